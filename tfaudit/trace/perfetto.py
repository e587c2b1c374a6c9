"""Export a trace as Chrome JSON, for Perfetto and chrome://tracing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from .reading import find_files, read_trace
from .tables import PS_PER_US, Plane

# Viewers take no more; of a larger trace the longest events are kept, as TensorFlow itself does.
MOST_EVENTS = 1_000_000


def export(path: Path) -> bytes:
    """Return a Chrome trace of all hosts and devices. Raises `TraceError` like `read_trace`."""
    encode = msgspec.json.Encoder().encode
    traces = [read_trace(file, everything=True) for file in find_files(Path(path))]
    planes = [(trace.host, plane) for trace in traces for plane in trace.planes]
    shortest = _shortest([plane for _, plane in planes])
    parts = [
        encode(event)
        for process, (host, plane) in enumerate(planes, start=1)
        for event in _events(process, host, plane, shortest)
    ]
    return b'{"displayTimeUnit":"ms","traceEvents":[' + b",\n".join(parts) + b"]}\n"


def _shortest(planes: list[Plane]) -> int:
    """Return the duration in picoseconds below which events are left out."""
    durations = np.concatenate([np.empty(0, np.int64), *(p.numbers("duration_ps") for p in planes)])
    if durations.size <= MOST_EVENTS:
        return 0
    return int(np.partition(durations, -MOST_EVENTS)[-MOST_EVENTS]) + 1


def _events(process: int, host: str, plane: Plane, shortest: int) -> Iterator[dict[str, Any]]:
    title = f"{host} {plane.name}".strip()
    yield {"ph": "M", "pid": process, "name": "process_name", "args": {"name": title}}
    for thread, title in enumerate(plane.lines, start=1):
        named = {"ph": "M", "pid": process, "tid": thread, "name": "thread_name"}
        yield {**named, "args": {"name": title}}
    codes = [plane.numbers(name) for name in ("line", "name", "op", "details")]
    starts, durations = plane.numbers("start_ps"), plane.numbers("duration_ps")
    for row in np.flatnonzero(durations >= shortest).tolist():
        line, name, op, details = (int(column[row]) for column in codes)
        event: dict[str, Any] = {
            "ph": "X",
            "pid": process,
            "tid": line + 1,
            "name": plane.label(name) or "(no name)",
            "ts": float(starts[row] / PS_PER_US),
            "dur": float(durations[row] / PS_PER_US),
        }
        args = {key: plane.texts[text] for key, text in (("op", op), ("details", details)) if text >= 0}
        yield {**event, "args": args} if args else event
    columns = {name: plane.markers[name].tolist() for name in plane.markers.columns}
    for row, start in enumerate(columns["start_ps"]):
        yield {
            "ph": "X",
            "pid": process,
            "tid": 0,
            "name": f"step {columns['step'][row]} {columns['label'][row]}",
            "ts": start / PS_PER_US,
            "dur": columns["duration_ps"][row] / PS_PER_US,
        }

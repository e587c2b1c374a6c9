"""Read a Chrome trace: the ``.trace.json(.gz)`` of older TensorFlow, or the timeline of TF 1."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ..errors import TraceError
from .events import LONGEST_PS, NO_OP
from .lines import INPUT_THREAD, STEPS, STREAM, XLA_OPS
from .names import Role, role_of, work_of
from .tables import EVENT_COLUMNS, MARKER_COLUMNS, PS_PER_US, Interned, Plane, Trace, table

DEVICE = re.compile(r"/device:(GPU|TPU):(\d+)$")
HOST = re.compile(r"/host:(?!metadata)")
# TF 1: "/gpu:0/stream:12 Compute" is the device, "/job:localhost/.../gpu:0 Compute" the executor
# that feeds it. "stream:all" and "memcpy" repeat what the numbered streams have.
TF1_DEVICE = re.compile(r"/(?:device:)?gpu:(\d+)/(stream:\w+|memcpy) Compute$", re.IGNORECASE)
TF1_EXECUTOR = re.compile(r"/(?:device:)?[cg]pu:\d+ Compute$", re.IGNORECASE)
NUMBERED = re.compile(r"stream\W*\d", re.IGNORECASE)
TF1_STEP = "session.run"


class _Event(msgspec.Struct):
    name: Any = ""
    ph: Any = ""
    pid: Any = 0
    tid: Any = 0
    ts: Any = 0
    dur: Any = 0
    args: Any = None


class _Document(msgspec.Struct):
    traceEvents: list[_Event]


@dataclass
class _Rows:
    """The events of one plane, column by column."""

    name: str
    kind: str
    tf1: bool = False
    names: Interned = field(default_factory=Interned)
    texts: Interned = field(default_factory=Interned)
    lines: Interned = field(default_factory=Interned)
    events: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    markers: list[tuple[int, int, int, int, bool, str]] = field(default_factory=list)


def read_chrome(content: memoryview, path: Path) -> Trace:
    """Decode a file. Raises `TraceError` when it is no trace, or stops in the middle."""
    events = _parse(content, path)
    processes, threads = _titles(events)
    timed = [event for event in events if event.ph == "X" and _is_time(event.ts, event.dur)]
    damaged = sum(event.ph == "X" for event in events) - len(timed)
    if not timed:
        raise TraceError(
            f"{path} is JSON, but holds no timed events: it is no profiler trace; expected the "
            "traceEvents of a .trace.json(.gz) or of a TF1 timeline."
        )
    zero = min(event.ts for event in timed)
    planes: dict[str, _Rows] = {}
    for event in timed:
        process = processes.get(_key(event.pid), "")
        line = threads.get((_key(event.pid), _key(event.tid)), "")
        _add(planes, process, line, event, zero)
    if not planes:
        raise TraceError(
            f"{path} is a Chrome trace of something else: no process in it is a device or a host of "
            "TensorFlow or JAX."
        )
    host = path.name.split(".")[0]
    return Trace(path, host, tuple(_plane(rows) for rows in planes.values()), (), damaged)


def _parse(content: memoryview, path: Path) -> list[_Event]:
    try:
        first = bytes(content[:64]).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        if first == b"[":
            return msgspec.json.decode(content, type=list[_Event])
        return msgspec.json.decode(content, type=_Document).traceEvents
    except msgspec.ValidationError:
        raise TraceError(
            f"{path} is JSON, but no trace: expected an object with a list of traceEvents."
        ) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        kind = "truncated" if "truncated" in str(error) else "corrupt"
        raise TraceError(
            f"{path} is {kind}: its JSON cannot be read to the end; copy or record it again."
        ) from None


def _is_time(ts: object, dur: object) -> bool:
    return all(
        isinstance(value, int | float) and math.isfinite(value) and abs(value) < 2**62 for value in (ts, dur)
    ) and bool(dur >= 0)  # type: ignore[operator]


def _key(identifier: object) -> str:
    return str(identifier)


def _titles(events: Iterable[_Event]) -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    """Return the names of processes and threads."""
    processes: dict[str, str] = {}
    threads: dict[tuple[str, str], str] = {}
    for event in events:
        if event.ph != "M" or not isinstance(event.args, dict):
            continue
        title = str(event.args.get("name", ""))
        if event.name == "process_name":
            processes[_key(event.pid)] = title
        elif event.name == "thread_name":
            threads[_key(event.pid), _key(event.tid)] = title
    return processes, threads


def _add(planes: dict[str, _Rows], process: str, line: str, event: _Event, zero: float) -> None:
    """Put one event into the plane it belongs to, if to any."""
    device, tf1 = DEVICE.search(process), TF1_DEVICE.search(process)
    if device:
        rows = _rows(planes, f"/device:{device[1]}:{device[2]}", device[1].lower())
    elif tf1:
        rows, line = _rows(planes, f"/device:GPU:{tf1[1]}", "gpu", True), tf1[2]
    elif HOST.search(process):
        rows = _rows(planes, "/host:CPU", "host")
    elif TF1_EXECUTOR.search(process):
        rows, line = _rows(planes, "/host:CPU", "host", True), process
    else:
        return
    args = event.args if isinstance(event.args, dict) else {}
    start, duration = round((event.ts - zero) * PS_PER_US), round(event.dur * PS_PER_US)
    if max(start, duration) > LONGEST_PS:
        return
    name = str(args.get("long_name") or event.name)
    step = _number(args.get("step_num"))
    if (rows.kind == "host" and step >= 0) or (rows.kind != "host" and line == STEPS):
        label = str(args.get("step_name") or name)
        step = step if step >= 0 else _number(name)
        group = _number(args.get("group_id"))
        rooted = rows.kind != "host" or _number(args.get("_r")) > 0 or group >= 0
        rows.markers.append((start, duration, step, group, rooted, label))
        return
    op = str(args.get("tf_op") or args.get("hlo_op") or (rows.tf1 and args.get("name")) or "")
    details = str(args.get("memcpy_details") or "")
    rows.events.append(
        (
            rows.lines.code(line),
            rows.names.code(name),
            start,
            duration,
            _number(args.get("correlation_id")),
            -1 if op in NO_OP else rows.texts.code(op),
            rows.texts.code(details) if details else -1,
        )
    )


def _rows(planes: dict[str, _Rows], name: str, kind: str, tf1: bool = False) -> _Rows:
    return planes.setdefault(name, _Rows(name, kind, tf1))


def _number(value: object) -> int:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1


def _plane(rows: _Rows) -> Plane:
    columns = ("line", "name", "start_ps", "duration_ps", "correlation", "op", "details")
    values = np.array(rows.events, np.int64).reshape(-1, len(columns))
    names, lines = rows.names.texts, rows.lines.texts
    found = dict(zip(columns, values.T, strict=True))
    if rows.kind == "host":
        kinds = role_of(names)[found["name"]]
        keep = _assign_roles(kinds, found, lines, rows.tf1)
    else:
        kinds = work_of(names)[found["name"]]
        keep = np.isin(found["line"], _streams(lines))
    found["kind"] = kinds
    order = np.flatnonzero(keep)[np.argsort(found["start_ps"][keep], kind="stable")]
    markers = rows.markers
    if rows.tf1 and rows.kind == "host" and order.size:
        stop = int((found["start_ps"] + found["duration_ps"]).max())
        markers = [(0, stop, 0, -1, True, TF1_STEP)]
    marked = dict(zip(MARKER_COLUMNS, zip(*markers, strict=True), strict=False)) if markers else {}
    return Plane(
        name=rows.name,
        kind=rows.kind,
        names=names,
        lines=lines,
        events=table(EVENT_COLUMNS, {name: each[order] for name, each in found.items()}),
        texts=rows.texts.texts,
        markers=table(MARKER_COLUMNS, marked),
    )


def _assign_roles(
    kinds: np.ndarray[Any, np.dtype[np.int8]],
    found: dict[str, np.ndarray[Any, np.dtype[np.int64]]],
    lines: list[str],
    tf1: bool,
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Give host events their final roles, in place, and say which have one."""
    inputs = np.array([bool(INPUT_THREAD.match(line)) for line in lines], bool)[found["line"]]
    if tf1:
        kinds[kinds == Role.PLAIN] = Role.OP
    working = np.isin(kinds, (Role.PLAIN, Role.EXECUTE, Role.OP))
    kinds[working & inputs] = Role.PRODUCE
    called = (found["correlation"] >= 0) & ~np.isin(kinds, (Role.SYNC, Role.COMPILE))
    kinds[called] = Role.LAUNCH
    return kinds > Role.PLAIN


def _streams(lines: list[str]) -> list[int]:
    """Return the lines that hold a device's events once: numbered streams, else what there is."""
    for wanted in (
        [line for line in lines if NUMBERED.search(line)],
        [line for line in lines if STREAM.match(line) or line == "memcpy"],
        [line for line in lines if line == XLA_OPS],
    ):
        if wanted:
            return [lines.index(line) for line in wanted]
    return []

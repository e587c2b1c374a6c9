"""The timeline of one step: what ran on the device and the host, and why the device idled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..errors import TraceError
from .assemble import all_lanes, prepare
from .idle import CAUSES, causes
from .intervals import Intervals
from .lanes import Lanes
from .names import Work
from .reading import find_files
from .steps import Steps
from .summary import Interval, Lane, Timeline
from .tables import PS_PER_MS, Plane
from .wire import Ints

# A timeline is drawn about this many pixels wide: what lies closer is one mark.
RESOLUTION = 1500

DEVICE_LANES = {
    "compute": Work.KERNEL,
    "communication": Work.COLLECTIVE,
    "copies h2d": Work.H2D,
    "copies d2h": Work.D2H,
    "copies d2d": Work.D2D,
    "copies other": Work.COPY,
}


def timeline(path: Path, step: int | None, device: int | None) -> Timeline:
    """Return the timeline of a step; see `tfaudit.trace.timeline`."""
    trace, view, steps = prepare(find_files(Path(path))[0])
    lanes = _choose_device(all_lanes(trace, view, steps), device)
    number, start, stop = _choose_window(steps, step, lanes)
    window = _Window(start, stop)
    drawn = list(_device_lanes(lanes, window)) if lanes.plane else []
    host = {
        "host: waiting for input": view.waiting,
        "host: making input": view.producing,
        "host: launching": view.launching,
        "host: blocked by the device": view.blocked,
        "host: compiling": view.compiling,
    }
    for name, moments in host.items():
        part = moments.within(start, stop)
        drawn.append(Lane(name=name, intervals=window.merged(part.start, part.stop, name)))
    return Timeline(
        host=trace.host,
        device=lanes.plane.name if lanes.plane else None,
        step=number,
        start_ms=start / PS_PER_MS,
        duration_ms=(stop - start) / PS_PER_MS,
        lanes=tuple(lane for lane in drawn if lane.intervals),
    )


def _choose_device(lanes: list[Lanes], device: int | None) -> Lanes:
    if device is None:
        return max(lanes, key=lambda each: each.busy.length if each.plane else -1)
    for each in lanes:
        if each.plane and each.plane.name.rpartition(":")[2] == str(device):
            return each
    names = ", ".join(each.plane.name for each in lanes if each.plane) or "none"
    raise TraceError(f"The trace has no device {device}: there are {names}.")


def _choose_window(steps: Steps, step: int | None, lanes: Lanes) -> tuple[int | None, int, int]:
    """Return the step asked for, or the one of median length, or all of the device's span."""
    if not steps:
        if step is not None:
            raise TraceError(f"The trace has no step {step}: no step markers were found in it.")
        busy = lanes.busy
        if busy:
            return None, int(busy.start[0]), int(busy.stop[-1])
        return None, lanes.start, max(lanes.stop, lanes.start + 1)
    rows = np.arange(steps.number.size)
    if step is not None:
        rows = np.flatnonzero(steps.number == step)
        if not rows.size:
            raise TraceError(
                f"The trace has no step {step}: its steps are {steps.number.min()} to {steps.number.max()}."
            )
    length = (steps.stop - steps.start)[rows]
    row = rows[np.argsort(length, kind="stable")[(rows.size - 1) // 2]]
    return int(steps.number[row]), int(steps.start[row]), int(steps.stop[row])


def _device_lanes(lanes: Lanes, window: _Window) -> Iterator[Lane]:
    plane = lanes.plane
    assert plane is not None
    kinds = plane.events["kind"].to_numpy()
    begin = plane.numbers("start_ps")
    end = begin + plane.numbers("duration_ps")
    shown = (end > window.start) & (begin < window.stop)
    for name, work in DEVICE_LANES.items():
        rows = np.flatnonzero(shown & (kinds == work))
        first, last = np.maximum(begin[rows], window.start), np.minimum(end[rows], window.stop)
        names = [plane.label(int(code)) for code in plane.numbers("name")[rows]]
        yield Lane(name=name, intervals=window.merged(first, last, name, names))
    yield Lane(name="idle", intervals=_idle(lanes, plane, window))


def _idle(lanes: Lanes, plane: Plane, window: _Window) -> tuple[Interval, ...]:
    idle = Intervals.one(window.start, window.stop) - lanes.busy
    seen = idle.stop - idle.start >= window.pixel
    idle = Intervals(idle.start[seen], idle.stop[seen])
    cause = causes(idle, plane, lanes.host)
    return tuple(
        window.interval(int(start), int(stop), CAUSES[code].value, CAUSES[code].value)
        for start, stop, code in zip(idle.start, idle.stop, cause, strict=True)
    )


class _Window:
    """The part of the trace that is drawn."""

    def __init__(self, start: int, stop: int) -> None:
        self.start, self.stop = start, stop
        self.pixel = max((stop - start) // RESOLUTION, 1)

    def interval(self, start: int, stop: int, kind: str, name: str, count: int = 1) -> Interval:
        return Interval(
            start_ms=(start - self.start) / PS_PER_MS,
            duration_ms=(stop - start) / PS_PER_MS,
            kind=kind,
            name=name,
            count=count,
        )

    def merged(
        self, start: Ints, stop: Ints, kind: str, names: list[str] | None = None
    ) -> tuple[Interval, ...]:
        """Merge sorted intervals that lie within a pixel; the longest gives its name."""
        if not start.size:
            return ()
        reach = np.maximum.accumulate(stop)
        first = np.append(0, np.flatnonzero(start[1:] > reach[:-1] + self.pixel) + 1)
        last = np.append(first[1:], start.size)
        drawn = []
        for low, high in zip(first.tolist(), last.tolist(), strict=True):
            longest = low + int(np.argmax(stop[low:high] - start[low:high]))
            name = names[longest] if names else kind
            end = int(reach[high - 1])
            drawn.append(self.interval(int(start[low]), end, kind, name, high - low))
        return tuple(drawn)

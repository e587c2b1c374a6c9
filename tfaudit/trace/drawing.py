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
from .summary import Interval, Lane, Timeline, plane_number
from .tables import PS_PER_MS
from .wire import Ints

# A timeline is drawn at most this many pixels wide: what lies closer is one mark.
RESOLUTION = 900
# Names of C++ templates run to thousands of characters; a mark needs no more than these.
LONGEST_NAME = 160

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
    lanes, number, start, stop = _choose(all_lanes(trace, view, steps), steps, step, device)
    window = _Window(start, stop)
    drawn = list(_device_lanes(lanes, window)) if lanes.plane else []
    host = {
        "host: waiting for input": view.waiting,
        "host: making input": view.producing,
        "host: launching": view.launching,
        "host: blocked by the device": view.blocked,
        "host: compiling": view.compiling,
    }
    if lanes.plane is None:
        host = {"host: running ops": view.computing - view.waiting, **host}
    for name, moments in host.items():
        part = moments.within(start, stop)
        drawn.append(window.lane(name, part.start, part.stop))
    return Timeline(
        host=trace.host,
        device=lanes.plane.name if lanes.plane else None,
        step=number,
        start_ms=start / PS_PER_MS,
        duration_ms=(stop - start) / PS_PER_MS,
        lanes=tuple(lane for lane in drawn if lane.busy_ms or lane.intervals),
    )


def _choose(
    lanes: list[Lanes], steps: Steps, step: int | None, device: int | None
) -> tuple[Lanes, int | None, int, int]:
    """Return the device, the step's number and the window to draw.

    Without ``device`` the one is taken that was busiest in the steps in question; of several steps,
    those count in which it did anything, and of these the one of median length.
    """
    candidates = _candidates(lanes, device)
    if not steps:
        if step is not None:
            raise TraceError(f"The trace has no step {step}: no step markers were found in it.")
        chosen = max(candidates, key=lambda each: each.busy.length)
        if chosen.busy:
            return chosen, None, int(chosen.busy.start[0]), int(chosen.busy.stop[-1])
        return chosen, None, chosen.start, max(chosen.stop, chosen.start + 1)
    rows = np.arange(steps.number.size)
    if step is not None:
        rows = np.flatnonzero(steps.number == step)
        if not rows.size:
            raise TraceError(
                f"The trace has no step {step}: its steps are {steps.number.min()} to {steps.number.max()}."
            )
    start, stop = steps.start[rows], steps.stop[rows]
    busy = np.array([each.busy.covered(start, stop) for each in candidates])
    chosen_row = int(busy.sum(axis=1).argmax())
    worked = np.flatnonzero(busy[chosen_row] > 0)
    worked = worked if worked.size else np.arange(rows.size)
    order = worked[np.argsort((stop - start)[worked], kind="stable")]
    row = int(rows[order[(order.size - 1) // 2]])
    return candidates[chosen_row], int(steps.number[row]), int(steps.start[row]), int(steps.stop[row])


def _candidates(lanes: list[Lanes], device: int | None) -> list[Lanes]:
    """Return the device of that number, or all; the host alone stands in where nothing ran on any."""
    on_devices = [each for each in lanes if each.plane]
    if device is None:
        return [each for each in on_devices if each.busy] or lanes[-1:]
    found = [each for each in on_devices if each.plane and plane_number(each.plane.name) == device]
    if not found:
        names = ", ".join(each.plane.name for each in on_devices if each.plane) or "none"
        raise TraceError(f"The trace has no device {device}: there are {names}.")
    return found


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
        yield window.lane(name, first, last, names)
    idle = Intervals.one(window.start, window.stop) - lanes.busy
    cause = causes(idle, plane, lanes.host)
    for code, each in enumerate(CAUSES):
        mine = cause == code
        yield window.gaps(f"idle: {each.value}", idle.start[mine], idle.stop[mine])


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
            name=name[:LONGEST_NAME],
            count=count,
        )

    def gaps(self, name: str, start: Ints, stop: Ints) -> Lane:
        """A lane of idleness: gaps below a pixel count, but drawn as one they would look like a long one."""
        seen = stop - start >= self.pixel
        drawn = self.merged(start[seen], stop[seen], name)
        return Lane(name=name, intervals=drawn, busy_ms=int((stop - start).sum()) / PS_PER_MS)

    def lane(self, name: str, start: Ints, stop: Ints, names: list[str] | None = None) -> Lane:
        busy = Intervals.union(start, stop).length
        return Lane(name=name, intervals=self.merged(start, stop, name, names), busy_ms=busy / PS_PER_MS)

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

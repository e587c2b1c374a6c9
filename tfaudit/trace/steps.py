"""Find the steps of a trace, and split each into what it went to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .intervals import Intervals
from .lanes import Lanes
from .summary import Step
from .tables import PS_PER_MS, Plane, Trace
from .wire import Ints


class Marker(NamedTuple):
    """A step as one plane sees it. ``step`` and ``group`` are -1 where they are not told."""

    start: int
    stop: int
    step: int
    group: int
    rooted: bool
    label: str


@dataclass(frozen=True)
class Steps:
    """The steps of a trace by start; they do not overlap.

    ``rooted``: some host marker carries _r=1, without which XProf sees none. True without markers.
    """

    number: Ints
    label: list[str]
    start: Ints
    stop: Ints
    rooted: bool

    def __bool__(self) -> bool:
        return bool(self.number.size)

    def at(self, moments: Ints) -> Ints:
        """Return the number of the step that each moment lies in, -1 outside."""
        if not self:
            return np.full(moments.size, -1, np.int64)
        row = np.searchsorted(self.start, moments, "right") - 1
        inside = (row >= 0) & (moments < self.stop[np.maximum(row, 0)])
        return np.where(inside, self.number[np.maximum(row, 0)], -1)


def find_steps(trace: Trace) -> Steps:
    """Return the steps: host markers, joined with the devices' own view of the same steps.

    A step runs from its host marker's start to the end of what it did on the devices: a marker ends
    when the work is queued, the device's step begins only with its first kernel, when the wait for
    input is over. It never reaches back into the step before, which a host that runs ahead would.
    """
    marked = _outermost(_markers(trace.hosts))
    on_devices = list(_markers(trace.devices))
    by_group = any(marker.group >= 0 for marker in marked)
    known: dict[int, list[Marker]] = {}
    for marker in on_devices:
        known.setdefault(marker.group if by_group else marker.step, []).append(marker)
    found = []
    for marker in marked:
        key = marker.group if by_group else marker.step
        same = [marker, *(known.pop(key, []) if key >= 0 else [])]
        start, stop = min(m.start for m in same), max(m.stop for m in same)
        found.append(marker._replace(start=start, stop=stop))
    for rest in known.values():
        # Devices that run the same step at different times have one each.
        starts = np.array([marker.start for marker in rest], np.int64)
        each = Intervals.union(starts, np.array([marker.stop for marker in rest], np.int64))
        for start, stop in zip(each.start.tolist(), each.stop.tolist(), strict=True):
            found.append(rest[0]._replace(start=start, stop=stop))
    rooted = not marked or any(marker.rooted for marker in marked)
    return _without_overlap(found, rooted)


def _markers(planes: Iterable[Plane]) -> Iterable[Marker]:
    for plane in planes:
        columns = {name: plane.markers[name].tolist() for name in plane.markers.columns}
        for row in range(len(plane.markers)):
            start = int(columns["start_ps"][row])
            yield Marker(
                start=start,
                stop=start + int(columns["duration_ps"][row]),
                step=int(columns["step"][row]),
                group=int(columns["group"][row]),
                rooted=bool(columns["rooted"][row]),
                label=str(columns["label"][row]),
            )


def _outermost(markers: Iterable[Marker]) -> list[Marker]:
    """Of nested markers (a callback's within the trainer's), keep the outer ones."""
    kept: list[Marker] = []
    reach = -(2**63)
    for marker in sorted(markers, key=lambda marker: (marker.start, -marker.stop)):
        if marker.stop > reach:
            kept.append(marker)
            reach = marker.stop
    return kept


def _without_overlap(found: list[Marker], rooted: bool) -> Steps:
    """Let each step begin where the one before ended, if they overlap."""
    kept: list[Marker] = []
    reach = -(2**63)
    for marker in sorted(found):
        start = max(marker.start, reach)
        if marker.stop > start:
            kept.append(marker._replace(start=start))
            reach = marker.stop
    return Steps(
        number=np.array([marker.step for marker in kept], np.int64),
        label=[marker.label for marker in kept],
        start=np.array([marker.start for marker in kept], np.int64),
        stop=np.array([marker.stop for marker in kept], np.int64),
        rooted=rooted,
    )


def split(steps: Steps, lanes: list[Lanes], host: str) -> tuple[Step, ...]:
    """Split each step by the lanes of its busiest device. ``lanes`` has at least one entry."""
    start, stop = steps.start, steps.stop
    busy = np.array([each.busy.covered(start, stop) for each in lanes])
    chosen = busy.argmax(axis=0)

    def part(name: str) -> Ints:
        values: list[Ints] = [getattr(each, name).covered(start, stop) for each in lanes]
        picked: Ints = np.array(values)[chosen, np.arange(start.size)]
        return picked

    waiting, copying, launching = part("waiting"), part("copying"), part("launching")
    compute, communication = part("compute"), part("communication")
    other = stop - start - waiting - copying - launching - compute - communication
    split_steps = []
    for row, number in enumerate(steps.number.tolist()):
        plane = lanes[chosen[row]].plane
        length = int(stop[row] - start[row])
        split_steps.append(
            Step(
                step=number,
                name=steps.label[row],
                host=host,
                device=plane.name if plane else None,
                start_ms=float(start[row] / PS_PER_MS),
                duration_ms=length / PS_PER_MS,
                input_wait_ms=float(waiting[row] / PS_PER_MS),
                copy_ms=float(copying[row] / PS_PER_MS),
                launch_ms=float(launching[row] / PS_PER_MS),
                compute_ms=float(compute[row] / PS_PER_MS),
                communication_ms=float(communication[row] / PS_PER_MS),
                other_ms=float(other[row] / PS_PER_MS),
                idle_fraction=1 - float(busy[chosen[row], row]) / length if plane else None,
            )
        )
    return tuple(split_steps)


def tail_fraction(steps: Steps, moments: Intervals) -> float | None:
    """Return the share of these moments within steps that lies in the steps' last quarters."""
    start, stop = steps.start, steps.stop
    total = moments.covered(start, stop).sum()
    tail = moments.covered(stop - (stop - start) // 4, stop).sum()
    return float(tail / total) if total else None

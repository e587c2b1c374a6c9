"""What the host was doing: sets of moments per role, and the calls that launched device work."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from .intervals import Intervals, self_times
from .names import Role
from .summary import Host, HostOp
from .tables import PS_PER_MS, Plane, Trace
from .wire import Ints

TOP_HOST_OPS = 10


@dataclass(frozen=True)
class HostView:
    """The host events of one file, from all its host planes."""

    planes: tuple[Plane, ...]

    @cached_property
    def present(self) -> bool:
        """Whether there is any event to tell a cause from."""
        return any(len(plane.events) for plane in self.planes)

    def during(self, *roles: Role) -> Intervals:
        """Return when events of any of these roles ran."""
        found = Intervals.none()
        for plane in self.planes:
            rows = np.isin(plane.events["kind"].to_numpy(), roles)
            start = plane.numbers("start_ps")[rows]
            found = found | Intervals.union(start, start + plane.numbers("duration_ps")[rows])
        return found

    @cached_property
    def waiting(self) -> Intervals:
        """When somebody waited for the next batch."""
        return self.during(Role.INPUT)

    @cached_property
    def producing(self) -> Intervals:
        """When the input pipeline was at work."""
        return self.during(Role.PRODUCE)

    @cached_property
    def compiling(self) -> Intervals:
        return self.during(Role.COMPILE)

    @cached_property
    def blocked(self) -> Intervals:
        """When the host waited for the device or copied synchronously."""
        return self.during(Role.SYNC)

    @cached_property
    def launching(self) -> Intervals:
        """When the executor ran ops or put work on a device."""
        return self.during(Role.LAUNCH, Role.EXECUTE, Role.OP)

    @cached_property
    def computing(self) -> Intervals:
        """When ops ran, outside the input pipeline."""
        return self.during(Role.OP)

    @cached_property
    def shows_executor(self) -> bool:
        """Whether the executor was traced; otherwise nothing follows from seeing no work of it."""
        kinds = (Role.EXECUTE, Role.OP)
        return any(np.isin(plane.events["kind"].to_numpy(), kinds).any() for plane in self.planes)

    @cached_property
    def calls(self) -> Calls:
        """The calls with a correlation id, the first of each."""
        ids, starts, texts = [], [], []
        names: list[str] = []
        for plane in self.planes:
            ids.append(plane.numbers("correlation"))
            starts.append(plane.numbers("start_ps"))
            texts.append(plane.numbers("name").astype(np.int64) + len(names))
            names += plane.names
        none = np.empty(0, np.int64)
        correlation = np.concatenate([none, *ids])
        rows = np.flatnonzero(correlation >= 0)
        start, text = np.concatenate([none, *starts])[rows], np.concatenate([none, *texts])[rows]
        order = np.lexsort((start, correlation[rows]))
        return Calls(correlation[rows][order], start[order], text[order], names)


@dataclass(frozen=True)
class Calls:
    """Host calls sorted by correlation id and start."""

    correlation: Ints
    start: Ints
    text: Ints
    names: list[str]

    def find(self, correlation: Ints) -> tuple[npt.NDArray[np.bool_], Ints]:
        """Return which ids have a call, and the row of the first one (0 where there is none)."""
        if not self.correlation.size:
            return np.zeros(correlation.size, bool), np.zeros(correlation.size, np.int64)
        at = np.searchsorted(self.correlation, correlation)
        at = np.minimum(at, self.correlation.size - 1)
        found = (self.correlation[at] == correlation) & (correlation >= 0)
        return found, np.where(found, at, 0)


def view(trace: Trace) -> HostView:
    return HostView(tuple(trace.hosts))


def describe(trace: Trace, host: HostView) -> Host:
    """Return the host's own record: waiting for input and the ops on the executor's threads."""
    starts = [plane.numbers("start_ps") for plane in host.planes if len(plane.events)]
    stops = [
        plane.numbers("start_ps") + plane.numbers("duration_ps") for plane in host.planes if len(plane.events)
    ]
    span = max(int(s.max()) for s in stops) - min(int(s.min()) for s in starts) if starts else 0
    return Host(
        host=trace.host,
        source=str(trace.path),
        events=sum(len(plane.events) for plane in host.planes),
        span_ms=span / PS_PER_MS,
        input_wait_ms=host.waiting.length / PS_PER_MS,
        executor_ms=host.computing.length / PS_PER_MS,
        compilation_ms=host.compiling.length / PS_PER_MS,
        top_ops=_top(host, Role.OP),
        top_input_ops=_top(host, Role.PRODUCE, Role.INPUT),
    )


def _top(host: HostView, *roles: Role) -> tuple[HostOp, ...]:
    """Sum the self time of host events by name."""
    frames = []
    for plane in host.planes:
        events = plane.events[plane.events["kind"].isin([int(role) for role in roles])]
        own = self_times(
            events["line"].to_numpy(),
            events["start_ps"].to_numpy(),
            events["duration_ps"].to_numpy(),
        )
        sums = pd.DataFrame({"name": events["name"].to_numpy(), "own": own}).groupby("name")["own"]
        totals = sums.agg(["sum", "size"]).nlargest(TOP_HOST_OPS, "sum")
        totals.index = pd.Index([plane.names[int(name)] for name in totals.index])
        frames.append(totals)
    if not frames:
        return ()
    table = pd.concat(frames).groupby(level=0).sum().nlargest(TOP_HOST_OPS, "sum")
    return tuple(
        HostOp(name=str(name), count=int(count), time_ms=float(time_ps / PS_PER_MS))
        for name, time_ps, count in zip(table.index, table["sum"], table["size"], strict=True)
    )

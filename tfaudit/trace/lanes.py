"""What one device was doing: disjoint sets of moments that, with what is left, make up its time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .hosts import HostView
from .idle import starved
from .intervals import Intervals
from .names import Work
from .tables import Plane

COPIES = (Work.H2D, Work.D2H, Work.D2D, Work.COPY)


@dataclass(frozen=True)
class Lanes:
    """The moments of one device (or, with ``plane`` None, of the host alone) by what they went to.

    `compute`, `communication`, `copying`, `waiting` and `launching` are disjoint.
    """

    plane: Plane | None
    host: HostView
    start: int
    stop: int

    def during(self, *work: Work) -> Intervals:
        """Return when events of any of these kinds ran on the device."""
        if self.plane is None:
            return Intervals.none()
        rows = np.isin(self.plane.events["kind"].to_numpy(), work)
        start = self.plane.numbers("start_ps")[rows]
        return Intervals.union(start, start + self.plane.numbers("duration_ps")[rows])

    @cached_property
    def gaps(self) -> Intervals:
        """When nothing ran, from one event to the next; what is before the first is no gap."""
        if self.plane is None:
            return Intervals.none()
        start = self.plane.numbers("start_ps")
        stop = start + self.plane.numbers("duration_ps")
        return Intervals.union(start, stop, instants=True).gaps()

    @cached_property
    def kernels(self) -> Intervals:
        """Everything but copies; collectives are kernels, too."""
        return self.during(Work.KERNEL, Work.COLLECTIVE)

    @cached_property
    def busy(self) -> Intervals:
        return self.kernels | self.during(*COPIES)

    @cached_property
    def compute(self) -> Intervals:
        if self.plane is None:
            return self.host.computing - self.host.waiting
        return self.during(Work.KERNEL)

    @cached_property
    def communication(self) -> Intervals:
        return self.during(Work.COLLECTIVE) - self.compute

    @cached_property
    def copying(self) -> Intervals:
        return self.during(*COPIES) - self.kernels

    @cached_property
    def idle(self) -> Intervals:
        """When nothing ran, between ``start`` and ``stop``."""
        return Intervals.one(self.start, self.stop) - self.busy

    @cached_property
    def waiting(self) -> Intervals:
        if self.plane is None:
            return self.host.waiting
        hungry = starved(self.idle, self.host)
        return self.idle & (self.host.waiting | (self.host.producing & hungry))

    @cached_property
    def launching(self) -> Intervals:
        if self.plane is None:
            return self.host.launching - self.host.computing - self.waiting
        return (self.idle - self.waiting) & self.host.launching

"""Sets of moments, as sorted disjoint intervals in picoseconds; every operation is vectorised."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .wire import Ints


@dataclass(frozen=True)
class Intervals:
    """Disjoint intervals ``[start, stop)``, sorted, none empty and none touching the next."""

    start: Ints
    stop: Ints

    @classmethod
    def none(cls) -> Intervals:
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def one(cls, start: int, stop: int) -> Intervals:
        return cls.union(np.array([start], np.int64), np.array([stop], np.int64))

    @classmethod
    def union(cls, start: Ints, stop: Ints, instants: bool = False) -> Intervals:
        """Return the moments covered by any of the intervals given, which may overlap.

        With ``instants``, intervals of no length stay, where they lie in no other: they part gaps.
        """
        if not start.size:
            return cls.none()
        if (start[1:] < start[:-1]).any():
            order = np.argsort(start, kind="stable")
            start, stop = start[order], stop[order]
        reach = np.maximum.accumulate(stop)
        first = np.empty(start.size, bool)
        first[0] = True
        np.greater(start[1:], reach[:-1], out=first[1:])
        last = np.append(first[1:], True)
        begin, end = start[first], reach[last]
        filled = end >= begin if instants else end > begin
        return cls(begin[filled], end[filled])

    @property
    def length(self) -> int:
        """The time covered, in picoseconds."""
        return int((self.stop - self.start).sum())

    def __bool__(self) -> bool:
        return bool(self.start.size)

    def __or__(self, other: Intervals) -> Intervals:
        return Intervals.union(
            np.concatenate([self.start, other.start]), np.concatenate([self.stop, other.stop])
        )

    def __and__(self, other: Intervals) -> Intervals:
        return self._where(other, both=True)

    def __sub__(self, other: Intervals) -> Intervals:
        return self._where(other, both=False) if other else self

    def _where(self, other: Intervals, both: bool) -> Intervals:
        """Keep what also lies in ``other``, or what does not: a sweep over all edges."""
        edges = np.concatenate([self.start, self.stop, other.start, other.stop])
        ours, theirs = self.start.size, other.start.size
        delta = np.zeros((2, edges.size), np.int8)
        delta[0, :ours], delta[0, ours : 2 * ours] = 1, -1
        delta[1, 2 * ours : 2 * ours + theirs], delta[1, 2 * ours + theirs :] = 1, -1
        order = np.argsort(edges, kind="stable")
        inside = np.cumsum(delta[:, order], axis=1, dtype=np.int32)
        kept = (inside[0, :-1] > 0) & ((inside[1, :-1] > 0) == both)
        edges = edges[order]
        return Intervals.union(edges[:-1][kept], edges[1:][kept])

    def gaps(self) -> Intervals:
        """Return what lies between the intervals; not what comes before the first or after the last."""
        return Intervals(self.stop[:-1], self.start[1:])

    def within(self, start: int, stop: int) -> Intervals:
        """Return the part between two moments."""
        first = int(np.searchsorted(self.stop, start, "right"))
        last = int(np.searchsorted(self.start, stop, "left"))
        return Intervals(np.maximum(self.start[first:last], start), np.minimum(self.stop[first:last], stop))

    def covered(self, start: Ints, stop: Ints) -> Ints:
        """Return for each window how much of it these intervals cover."""
        return self._before(stop) - self._before(start)

    def _before(self, moment: Ints) -> Ints:
        """Return how much is covered before each moment."""
        if not self.start.size:
            return np.zeros(moment.size, np.int64)
        total = np.concatenate([[0], np.cumsum(self.stop - self.start)])
        at = np.searchsorted(self.start, moment, "right")
        current = np.maximum(at - 1, 0)
        over = np.where(at > 0, np.maximum(self.stop[current] - moment, 0), 0)
        return total[at] - over


# Deeper nesting is that of damaged files; what lies deeper is counted as part of its parents.
DEEPEST = 200


def self_times(line: npt.NDArray[np.int32], start: Ints, duration: Ints) -> npt.NDArray[np.float64]:
    """Return for each event its duration without that of the events nested directly in it.

    ``start`` must be sorted. Events nest within their line; one that outlasts the event it begins
    in is counted as nested in it up to that event's end.
    """
    own = duration.astype(np.float64)
    for each in np.unique(line).tolist():
        rows = np.flatnonzero(line == each)
        order = rows[np.lexsort((-duration[rows], start[rows]))]
        begin, end = start[order], start[order] + duration[order]
        depth = np.arange(order.size) - np.searchsorted(np.sort(end), begin, "right")
        depth = np.maximum(depth, 0)
        for level in range(1, min(int(depth.max(initial=0)), DEEPEST) + 1):
            inner, outer = np.flatnonzero(depth == level), np.flatnonzero(depth == level - 1)
            if not outer.size:
                continue
            parent = outer[np.maximum(np.searchsorted(outer, inner) - 1, 0)]
            taken = np.maximum(np.minimum(end[inner], end[parent]) - begin[inner], 0)
            np.subtract.at(own, order[parent], taken)
    return np.maximum(own, 0.0)

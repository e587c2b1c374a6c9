"""Why a device idled: the cause of each gap, from what the host did meanwhile."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .hosts import HostView
from .intervals import Intervals
from .names import Work
from .summary import Cause
from .tables import Plane

# A host activity is the cause of a gap when it fills at least half of it: no two can.
MAIN_SHARE = 0.5
# A launch that comes late is dispatch overhead up to here (HolisticTraceAnalysis calls 0.1 ms a late
# launch). Above, it is so only while the executor is seen at work; otherwise Python was.
DISPATCH_PS = 10**9

CAUSES = tuple(Cause)
_CODE = {cause: code for code, cause in enumerate(CAUSES)}


def causes(gaps: Intervals, plane: Plane, host: HostView) -> npt.NDArray[np.int8]:
    """Return for each gap of a device the index of its cause in `CAUSES`."""
    if not host.present:
        return np.full(gaps.start.size, _CODE[Cause.UNKNOWN], np.int8)
    half = (gaps.stop - gaps.start) * MAIN_SHARE

    def filled(by: Intervals) -> npt.NDArray[np.bool_]:
        return by.covered(gaps.start, gaps.stop) >= half

    late, graphed = _launches(gaps, plane, host)
    dispatching = gaps.stop - gaps.start <= DISPATCH_PS
    if host.shows_executor:
        dispatching |= filled(host.launching)
    else:
        dispatching[:] = True
    rules = {
        Cause.INPUT: filled(host.waiting) | _starved(gaps, host),
        Cause.COPY: filled(host.blocked) | _after_blocking_copy(gaps, plane),
        Cause.COMPILATION: filled(host.compiling),
        Cause.LAUNCH: late & dispatching,
        Cause.GRAPH: graphed & ~late,
    }
    codes = [_CODE[cause] for cause in rules]
    return np.select(list(rules.values()), codes, _CODE[Cause.OTHER]).astype(np.int8)


def starved(idle: Intervals, host: HostView) -> Intervals:
    """Return those idle intervals in which the host only made input, though no wait was recorded.

    A profile that starts in the middle of a wait does not record it: the events that do show are
    those of the pipeline that is being waited for.
    """
    which = _starved(idle, host)
    return Intervals(idle.start[which], idle.stop[which])


def _starved(idle: Intervals, host: HostView) -> npt.NDArray[np.bool_]:
    window = idle.start, idle.stop
    half = (idle.stop - idle.start) * MAIN_SHARE
    hungry: npt.NDArray[np.bool_] = (
        (host.producing.covered(*window) >= half)
        & (host.waiting.covered(*window) == 0)
        & (host.launching.covered(*window) < half)
    )
    return hungry


def _launches(
    gaps: Intervals, plane: Plane, host: HostView
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Say of each gap whether the event after it was launched during it, and under a CUDA graph."""
    start, correlation = plane.numbers("start_ps"), plane.numbers("correlation")
    if not start.size:
        return np.zeros(gaps.start.size, bool), np.zeros(gaps.start.size, bool)
    following = np.minimum(np.searchsorted(start, gaps.stop), start.size - 1)
    mine = np.where(start[following] == gaps.stop, correlation[following], -1)
    found, row = host.calls.find(mine)
    called = host.calls.start[row] if host.calls.start.size else np.zeros(mine.size, np.int64)
    ids, count = np.unique(correlation[correlation >= 0], return_counts=True)
    shared = np.isin(mine, ids[count > 1])
    graphed = plane.events["graphed"].to_numpy()[following] | shared
    return found & (called >= gaps.start), graphed


def _after_blocking_copy(gaps: Intervals, plane: Plane) -> npt.NDArray[np.bool_]:
    """Say which gaps follow a read-back that the host waited for."""
    blocking = np.array([*("async:0" in text for text in plane.texts), False], bool)
    rows = blocking[plane.numbers("details")]
    rows &= plane.events["kind"].to_numpy() == Work.D2H
    stop = plane.numbers("start_ps")[rows] + plane.numbers("duration_ps")[rows]
    return np.isin(gaps.start, stop)

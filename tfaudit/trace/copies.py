"""Copies between host and device: direction, bytes, memory kind, and what hides them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from .hosts import HostView
from .intervals import Intervals
from .lanes import COPIES, Lanes
from .names import Work, direction_of
from .steps import Steps
from .summary import Copies, Copy, CopySummary
from .tables import PS_PER_MS, Plane
from .wire import Ints

LONGEST_LISTED = 20

DIRECTIONS = {Work.H2D: "h2d", Work.D2H: "d2h", Work.D2D: "d2d", Work.COPY: "other"}

# memcpy_details, in every spelling seen: "size:4 dest:0 async:1",
# "kind_src:pageable kind_dst:device size:4 ...", "kind:Unknown size:0 ...", "num_bytes:4\n...".
_SIZE = re.compile(r"(?:^|[\s,;])(?:size|num_bytes|bytes)\s*[:=]\s*(\d{1,18})\b")
_KIND = re.compile(r"kind(?:_src|_dst)?\s*[:=]\s*(\w+)", re.IGNORECASE)
_SYNCHRONOUS = re.compile(r"async\s*[:=]\s*(?:0|false)", re.IGNORECASE)
# What Unknown and its kin say of the memory: nothing.
_TOLD = frozenset({"pageable", "pinned", "device", "array", "managed", "devicestatic"})


def with_directions(plane: Plane, host: HostView) -> Plane:
    """Turn ROCm's copy kernels into copies.

    HIP copies with kernels (``__amd_rocclr_copyBuffer.kd``) that are named alike in all directions.
    What tells them apart is the host call with the same correlation id: hipMemcpyHtoDAsync,
    hipMemcpyDtoHAsync or hipMemcpyDtoDAsync. Without a host call the direction stays unknown.
    """
    kinds = plane.events["kind"].to_numpy()
    rows = np.flatnonzero(kinds == Work.BLIT)
    if not rows.size:
        return plane
    found, call = host.calls.find(plane.numbers("correlation")[rows])
    kinds = kinds.copy()
    kinds[rows] = Work.COPY
    if found.any():
        directions = direction_of(host.calls.names)
        kinds[rows[found]] = directions[host.calls.text[call[found]]]
    return replace(plane, events=plane.events.assign(kind=kinds))


def sizes(plane: Plane) -> Ints:
    """Return the bytes of each event, -1 where they are not told."""
    parsed = [_SIZE.search(text) for text in plane.texts]
    table = np.array([*(int(found[1]) if found else -1 for found in parsed), -1], np.int64)
    table[table == 0] = -1  # ROCm writes size:0 for a size that it does not know
    size: Ints = table[plane.numbers("details")]
    return size


def pageable(plane: Plane) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Say of each event whether its memory kinds are told, and whether one is pageable."""
    kinds = [{kind.lower() for kind in _KIND.findall(text)} for text in plane.texts]
    told = np.array([*(bool(found & _TOLD) for found in kinds), False], bool)
    paged = np.array([*("pageable" in found for found in kinds), False], bool)
    details = plane.numbers("details")
    return told[details], paged[details]


def summarise_copies(lanes: Lanes, plane: Plane, steps: Steps) -> CopySummary:
    """Describe a device's copies."""
    size = sizes(plane)
    told, paged = pageable(plane)
    synchronous = np.array([*(bool(_SYNCHRONOUS.search(t)) for t in plane.texts), False], bool)
    blocking = synchronous[plane.numbers("details")]
    kinds = plane.events["kind"].to_numpy()
    start, duration = plane.numbers("start_ps"), plane.numbers("duration_ps")
    step = steps.at(start)
    between = _between_kernels(start, start + duration, lanes.kernels, steps)

    def direction(work: Work) -> Copies:
        rows = np.flatnonzero(kinds == work)
        moments = lanes.during(work)
        sized = rows[size[rows] > 0]
        total, time_ps = int(size[sized].sum()), float(duration[sized].sum(dtype=float))
        known = told[rows].any()
        return Copies(
            count=rows.size,
            bytes=total,
            busy_ms=moments.length / PS_PER_MS,
            exposed_ms=(moments - lanes.kernels).length / PS_PER_MS,
            gb_per_s=total / time_ps * 1000 if time_ps else None,  # bytes per ps = 1000 GB/s
            unsized_count=rows.size - sized.size,
            largest_bytes=int(size[sized].max(initial=0)),
            pageable_count=int(paged[rows].sum()) if known else None,
            pageable_bytes=int(size[sized][paged[sized]].sum()) if known else None,
            synchronous_count=int(blocking[rows].sum()),
            mid_step_count=int(between[rows].sum()) if steps else None,
        )

    rows = np.flatnonzero(np.isin(kinds, COPIES))
    ops = plane.numbers("op")
    longest = rows[np.argsort(-duration[rows], kind="stable")][:LONGEST_LISTED]
    listed = [
        Copy(
            direction=DIRECTIONS[Work(int(kinds[row]))],
            start_ms=float(start[row] / PS_PER_MS),
            duration_ms=float(duration[row] / PS_PER_MS),
            bytes=int(size[row]) if size[row] > 0 else None,
            pageable=bool(paged[row]) if told[row] else None,
            step=int(step[row]) if step[row] >= 0 else None,
            op=plane.texts[ops[row]] if ops[row] >= 0 else "",
        )
        for row in longest
    ]
    return CopySummary(
        h2d=direction(Work.H2D),
        d2h=direction(Work.D2H),
        d2d=direction(Work.D2D),
        other=direction(Work.COPY),
        longest=tuple(listed),
    )


def _between_kernels(start: Ints, stop: Ints, kernels: Intervals, steps: Steps) -> npt.NDArray[np.bool_]:
    """Say of each event whether kernels of its own step ran both before and after its start."""
    found = np.zeros(start.size, bool)
    if not (steps and kernels):
        return found
    row = np.searchsorted(steps.start, start, "right") - 1
    inside = (row >= 0) & (stop <= steps.stop[np.maximum(row, 0)])
    first, last = steps.start[np.maximum(row, 0)], steps.stop[np.maximum(row, 0)]
    found = (kernels.covered(first, start) > 0) & (kernels.covered(stop, last) > 0)
    return inside & found

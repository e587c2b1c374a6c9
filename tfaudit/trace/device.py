"""Describe one device: busy and idle time, gaps and their causes, copies, ops."""

from __future__ import annotations

import numpy as np

from .copies import summarise_copies
from .hosts import HostView
from .idle import CAUSES, causes
from .intervals import Intervals
from .lanes import Lanes
from .ops import collectives, precision, small_kernels, top_ops
from .steps import Steps
from .summary import Device, Gap, IdleCause
from .tables import PS_PER_MS, Plane, Trace

GAPS_LISTED = 100


def describe_device(trace: Trace, lanes: Lanes, plane: Plane, steps: Steps) -> Device:
    """Return the record of one device."""
    busy = lanes.busy
    start, stop = plane.numbers("start_ps"), plane.numbers("duration_ps")
    stop = start + stop
    span = int(stop.max() - start.min()) if start.size else 0
    gaps = lanes.gaps
    longest = int((gaps.stop - gaps.start).max(initial=0))
    listed, by_cause = _gaps(gaps, plane, lanes.host, steps)
    small, small_fraction, small_time = small_kernels(plane)
    return Device(
        plane=plane.name,
        host=trace.host,
        events=len(plane.events),
        span_ms=span / PS_PER_MS,
        busy_ms=busy.length / PS_PER_MS,
        kernel_busy_ms=lanes.kernels.length / PS_PER_MS,
        idle_fraction=1 - busy.length / span if span else None,
        longest_gap_ms=longest / PS_PER_MS if start.size else None,
        gap_count=gaps.start.size,
        gaps=listed,
        idle_causes=by_cause,
        copies=summarise_copies(lanes, plane, steps),
        top_ops=top_ops(plane),
        small_kernel_count=small,
        small_kernel_fraction=small_fraction,
        small_kernel_time_fraction=small_time,
        collectives=collectives(lanes, plane, steps),
        precision=precision(plane),
        model=_text(plane, "model"),
        vendor=_text(plane, "vendor"),
        core_count=_number(plane, "core_count"),
        memory_bytes=_number(plane, "memory_bytes"),
        compute_capability=_capability(plane),
    )


def _gaps(
    gaps: Intervals, plane: Plane, host: HostView, steps: Steps
) -> tuple[tuple[Gap, ...], tuple[IdleCause, ...]]:
    length = gaps.stop - gaps.start
    cause = causes(gaps, plane, host)
    step = steps.at((gaps.start + gaps.stop) // 2)
    longest = np.sort(np.argsort(-length, kind="stable")[:GAPS_LISTED])
    listed = tuple(
        Gap(
            start_ms=float(gaps.start[row] / PS_PER_MS),
            duration_ms=float(length[row] / PS_PER_MS),
            step=int(step[row]) if step[row] >= 0 else None,
            cause=CAUSES[cause[row]],
        )
        for row in longest
    )
    sums = [
        IdleCause(
            cause=each,
            count=int((cause == code).sum()),
            duration_ms=float(length[cause == code].sum() / PS_PER_MS),
        )
        for code, each in enumerate(CAUSES)
        if (cause == code).any()
    ]
    return listed, tuple(sorted(sums, key=lambda each: -each.duration_ms))


def _text(plane: Plane, fact: str) -> str | None:
    value = plane.facts.get(fact)
    return str(value) if value else None


def _number(plane: Plane, fact: str) -> int | None:
    value = plane.facts.get(fact)
    return int(value) if isinstance(value, int) and value > 0 else None


def _capability(plane: Plane) -> str | None:
    major = plane.facts.get("compute_capability_major")
    minor = plane.facts.get("compute_capability_minor", 0)
    return None if major is None else f"{major}.{minor}"

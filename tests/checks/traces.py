"""Literal traces for tests: a step of 100 ms and one device, and ways to bend them."""

from __future__ import annotations

from typing import Any

from checks.builders import CPU, GPU, evidence

from tfaudit.evidence import Evidence, TraceEvidence
from tfaudit.trace.summary import (
    Cause,
    Collectives,
    Copies,
    Copy,
    CopySummary,
    Device,
    Gap,
    Health,
    IdleCause,
    Op,
    Precision,
    Step,
    TraceSummary,
    XprofVerdict,
)

PLANE = "/device:GPU:0"


def step(number: int = 0, **fields: Any) -> Step:
    """A step of 100 ms: parts in ms, the rest of it compute."""
    parts = {f"{name}_ms": fields.pop(name, 0.0) for name in PARTS}
    parts["compute_ms"] = 100.0 - sum(parts.values())
    fields = {"device": PLANE, "idle_fraction": 0.0, "start_ms": 100.0 * number, **fields}
    return Step(step=number, name="train", host="worker", duration_ms=100.0, **parts, **fields)


PARTS = ("input_wait", "copy", "launch", "communication", "other")


def copies(count: int = 0, **fields: Any) -> Copies:
    defaults = {
        "bytes": 0, "busy_ms": 0.0, "exposed_ms": 0.0, "gb_per_s": None, "unsized_count": 0,
        "largest_bytes": 0, "pageable_count": None, "pageable_bytes": None, "synchronous_count": 0,
        "mid_step_count": 0,
    }  # fmt: skip
    return Copies(count=count, **{**defaults, **fields})


def copy_summary(longest: tuple[Copy, ...] = (), **directions: Copies) -> CopySummary:
    ways = {way: directions.get(way, copies()) for way in ("h2d", "d2h", "d2d", "other")}
    return CopySummary(longest=longest, **ways)


def copy(bytes: int, *, pageable: bool | None = True, direction: str = "h2d") -> Copy:
    return Copy(direction, 0.0, 30.0, bytes, pageable, 0, "")


def op(name: str = "gemm", share: float = 1.0, **fields: Any) -> Op:
    defaults = {
        "op": "dense/MatMul", "kind": "kernel", "count": 10, "time_ms": 90.0, "sixteen_bit": True,
        "tensor_core": True, "changes_layout": False,
    }  # fmt: skip
    return Op(name=name, share_fraction=share, **{**defaults, **fields})


def collectives(**fields: Any) -> Collectives:
    defaults = {
        "count": 0, "busy_ms": 0.0, "exposed_ms": 0.0, "overlapped_fraction": None, "tail_fraction": None,
    }  # fmt: skip
    return Collectives(**{**defaults, **fields})


def precision(
    sixteen: float | None = 1.0, cores: float | None = 1.0, untold: float | None = 0.0
) -> Precision:
    return Precision(90.0, sixteen, cores, untold)


def gap(duration_ms: float, step: int | None = 0) -> Gap:
    return Gap(0.0, duration_ms, step, Cause.LAUNCH)


def device(plane: str = PLANE, **fields: Any) -> Device:
    """A busy device: 16-bit matrix products, nothing else."""
    defaults = {
        "events": 10, "span_ms": 100.0, "busy_ms": 100.0, "kernel_busy_ms": 100.0, "idle_fraction": 0.0,
        "longest_gap_ms": 0.0, "gap_count": 0, "gaps": (), "idle_causes": (IdleCause(Cause.LAUNCH, 1, 1.0),),
        "copies": copy_summary(), "top_ops": (op(),), "small_kernel_count": 0, "small_kernel_fraction": 0.0,
        "small_kernel_time_fraction": 0.0, "collectives": collectives(), "precision": precision(),
        "compute_capability": "8.0",
    }  # fmt: skip
    return Device(plane=plane, host="worker", **{**defaults, **fields})


def unused(plane: str) -> Device:
    return device(plane, events=0, busy_ms=0.0, top_ops=())


def summary(*parts: Step | Device | Health) -> TraceSummary:
    return TraceSummary(
        sources=("worker.xplane.pb",),
        hosts=(),
        devices=tuple(part for part in parts if isinstance(part, Device)),
        steps=tuple(part for part in parts if isinstance(part, Step)),
        health=tuple(part for part in parts if isinstance(part, Health)),
    )


def traced(
    *parts: Step | Device | Health, gpu: bool = True, xprof: XprofVerdict | None = None, **rates: Any
) -> Evidence:
    """Evidence of a run with that trace, on a machine with a GPU or without one."""
    found = TraceEvidence(bytes=1000, summary=summary(*parts), xprof=xprof)
    return evidence(trace=found, devices=(CPU, GPU) if gpu else (CPU,), **rates)

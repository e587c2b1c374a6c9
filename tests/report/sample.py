"""A small literal report, and ways to bend it."""

from __future__ import annotations

from datetime import date
from typing import Any

import msgspec

from tfaudit.records import (
    Answer,
    CallbackFact,
    CheckResult,
    Comparison,
    Device,
    Environment,
    Fact,
    Failure,
    Interval,
    Phase,
    Program,
    Report,
    Resolved,
    Said,
    Stage,
    Status,
    TargetSummary,
    VariantSummary,
)
from tfaudit.trace import summary as trace_records
from tfaudit.trace.summary import (
    Cause,
    Collectives,
    Copies,
    Copy,
    CopySummary,
    Gap,
    Health,
    Host,
    HostOp,
    IdleCause,
    Lane,
    Op,
    Precision,
    Step,
    Timeline,
    TraceEvidence,
    TraceSummary,
    XprofVerdict,
)

RESOLVED = Resolved(
    jit_compile=False,
    jit_compile_requested="auto",
    dtype_policy="float32",
    run_eagerly=False,
    optimizer="Adam",
    framework="Keras 3.12.0",
)


def interval(median: float, half: float = 0.0) -> Interval:
    return Interval(median=median, low=median - half, high=median + half)


def check(number: str, status: Status, **fields: Any) -> CheckResult:
    fields = {
        "id": f"check-{number.replace('.', '-')}",
        "section": f"Section {number.partition('.')[0]}",
        "title": f"Title of {number}",
        "summary": f"Summary of {number}.",
        **fields,
    }
    return CheckResult(number=number, status=status, **fields)


def checks() -> tuple[CheckResult, ...]:
    """Every status once, a second failure, two checks that are not built yet, and four that were answered."""
    return (
        check(
            "1.8",
            Status.FAIL,
            summary="Cached input is 3.23× as fast.",
            facts=(
                Fact(name="ratio", value=3.2291, unit="×"),
                Fact(name="memory", value=2361393152, unit="bytes"),
                Fact(name="prefetched", value=False),
                Fact(name="utilisation", value=None, unit="%"),
            ),
            threshold="fail from 1.25×",
            fix="Prefetch last:\n\n    dataset = dataset.prefetch(tf.data.AUTOTUNE)",
            gain=interval(3.23, 0.06),
            looks_at="The rate on\ncached input.",
            why="The device waits.",
            how_to_fix="Use `prefetch`.",
        ),
        check("1.10", Status.PASS),
        check("1.9", Status.UNKNOWN, summary="No trace was captured."),
        check("2.1", Status.MANUAL),
        check("2.2", Status.UNKNOWN, summary="No price was given."),
        check("2.3", Status.UNKNOWN, summary="No price was given."),
        check("4.1", Status.FAIL, gain=interval(4.5, 0.1), gain_is_bound=True),
        check("5.2", Status.WARN, gain=interval(1.14, 0.02)),
        check("5.3", Status.ERROR, detail="Traceback (most recent call last):\n  ValueError"),
        check("6.1", Status.NOT_APPLICABLE),
        check("7.1", Status.PASS, answer=answer("no"), contradicted=True, question="Are they?"),
        check(
            "7.2", Status.WARN, summary="Answered no by Ann: In vain.", answer=answer("no"), by_answer=True
        ),
        check("7.3", Status.PASS, summary="Answered yes.", answer=answer("yes"), by_answer=True),
        check("7.4", Status.WARN, answer=answer("yes"), contradicted=True),
    )


def answer(said: Said) -> Answer:
    return Answer(check="id", said=said, note="In vain.", by="Ann", on=date(2026, 1, 31))


def variant(name: str, rate: float | None, **fields: Any) -> VariantSummary:
    fields = {
        "title": f"Title of {name}",
        "status": "measured",
        "purpose": "time" if rate else "log",
        "failure": None,
        "step_ms": rate and interval(32_000 / rate, 1.0),
        "samples_per_usd": None,
        "compile_s": 2.13 if rate else None,
        "batch_size": 32.0 if rate else None,
        "steps": 640 if rate else 0,
        "resolved": RESOLVED if rate else None,
        "phases": (Phase(name="load", duration_s=1.5), Phase(name="measure", duration_s=20.0)),
        **fields,
    }
    return VariantSummary(id=name, samples_per_s=rate and interval(rate, 10.0), **fields)


def variants() -> tuple[VariantSummary, ...]:
    failure = Failure(
        phase="warm-up",
        kind="raised",
        message="The step raised InvalidArgumentError.",
        detail='Traceback (most recent call last):\n  File "train.py", line 22\nArgumentError',
        exit_code=1,
        signal="SIGABRT",
    )
    return (
        variant("baseline", 412.0, block_samples_per_s=(405.0, 412.0, 420.0), notes=("A note.",)),
        variant("cached-input", 1331.0),
        variant("float16", None, status="failed", failure=failure),
        variant("placement", None),
    )


def program() -> Program:
    return Program(
        form="script",
        model_class="Functional",
        model_name="small",
        parameters=1_530_993,
        layers=157,
        data_kind="tf.data",
        element_spec=("image: float32[?, 96, 96, 3]",),
        cardinality=-2,
        pipeline=(
            Stage(op="from_generator", python=True),
            Stage(op="interleave", function="read", location="train.py:18", inside="flat_map"),
            Stage(op="map", function="decode", location="train.py:23", num_parallel_calls=-1),
            Stage(op="batch", batch_size=32, drop_remainder=True),
            Stage(op="prefetch", buffer_size=-1),
        ),
        callbacks=(
            CallbackFact(
                name="ModelCheckpoint",
                module="keras.callbacks",
                bases=("Callback",),
                kept=False,
                reason="it writes files",
            ),
        ),
        fit_arguments={"epochs": "3"},
        location="train.py:58",
    )


def trace() -> TraceEvidence:
    """Two steps on one device, with a gap, a copy, an op, a remark and XProf's verdict."""
    some = Copies(2, 2048, 1.0, 0.5, 12.0, 0, 1024, 1, 1024, 0, 1)
    none = Copies(0, 0, 0.0, 0.0, None, 0, 0, None, None, 0, 0)
    op = Op("gemm_bf16", "dense/MatMul", "kernel", 20, 90.0, 0.9, True, True, False)
    device = trace_records.Device(
        plane="/device:GPU:0", host="worker", events=22, span_ms=200.0, busy_ms=150.0, kernel_busy_ms=149.5,
        idle_fraction=0.25, longest_gap_ms=50.0, gap_count=1, gaps=(Gap(100.0, 50.0, 1, Cause.INPUT),),
        idle_causes=(IdleCause(Cause.INPUT, 1, 50.0),),
        copies=CopySummary(some, none, none, none, (Copy("h2d", 99.0, 1.0, 1024, True, 0, "input"),)),
        top_ops=(op,), small_kernel_count=1, small_kernel_fraction=0.05, small_kernel_time_fraction=0.01,
        collectives=Collectives(0, 0.0, 0.0, None, None), precision=Precision(149.5, 1.0, 0.9, 0.0),
        compute_capability="8.0",
    )  # fmt: skip
    step = Step(0, "train", "worker", device.plane, 0.0, 100.0, 40.0, 1.0, 2.0, 50.0, 0.0, 7.0, 0.25)
    mark = trace_records.Interval(0.0, 50.0, "compute", "gemm_bf16", 10)
    idle = trace_records.Interval(50.0, 50.0, "idle: waiting for input", "idle: waiting for input")
    lanes = (Lane("compute", (mark,), 50.0), Lane("idle: waiting for input", (idle,), 50.0))
    return TraceEvidence(
        bytes=1000,
        summary=TraceSummary(
            sources=("worker.xplane.pb",),
            hosts=(
                Host("worker", "worker.xplane.pb", 9, 200.0, 80.0, 0.0, 0.0, (HostOp("a:b", 1, 1.0),), ()),
            ),
            devices=(device,),
            steps=(step, msgspec.structs.replace(step, step=1)),
            health=(Health("no-steps", "warning", "A remark."),),
        ),
        timeline=Timeline("worker", device.plane, 0, 0.0, 100.0, lanes),
        xprof=XprofVerdict(
            version="2.24", steps=1, input_fraction=0.1, other_fraction=0.4, classification="X"
        ),
    )


def report(**changes: Any) -> Report:
    """The report, with some of its fields replaced."""
    fields: dict[str, Any] = {
        "schema_version": "1",
        "tfaudit_version": "0.1.0",
        "created_at": "2025-01-31T20:52:11+00:00",
        "headline": "Input-bound: training reaches 31 % of its ceiling.",
        "complete": True,
        "target": TargetSummary(
            kind="script", path="train.py", commit="4f2a91c", arguments=("--epochs", "3")
        ),
        "environment": Environment(
            machine="workstation",
            os="Linux",
            cpu="Some CPU",
            cores=4,
            memory_bytes=16 * 2**30,
            devices=(Device(name="/device:CPU:0", kind="CPU", description="Some CPU"),),
            versions={"TensorFlow": "2.21.0", "Keras": "3.12.0"},
        ),
        "usd_per_hour": None,
        "variants": variants(),
        "comparisons": (
            Comparison(
                variant="cached-input",
                reference="baseline",
                ratio=interval(3.23, 0.06),
                verdict="faster",
            ),
        ),
        "checks": checks(),
        "program": program(),
        "notes": ("A note on the run.",),
        "trace": trace(),
        **changes,
    }
    found = [item.status.value for item in fields["checks"]]
    fields.setdefault("counts", {status.value: found.count(status.value) for status in Status})
    return Report(**fields)


def empty() -> Report:
    """What is left of a run that was stopped at once."""
    return report(variants=(), comparisons=(), checks=(), program=None, complete=False, notes=(), trace=None)


def poisoned(text: str) -> Report:
    """The report with a text in place of every string that may be any.

    Whatever text field the report gains, it is poisoned too.
    """

    def poison(value: Any, name: str = "") -> Any:
        if isinstance(value, str):
            return value if name in ("status", "unit", "number", "cause", "said", "on") else text
        if isinstance(value, dict):
            if name == "counts":
                return value
            if name in ("versions", "fit_arguments"):
                return {f"{key}{text}": poison(item) for key, item in value.items()}
            return {key: poison(item, key) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [poison(item, name) for item in value]
        return value

    document = poison(msgspec.to_builtins(report()))
    # Keep the two that the figures at the top and the chart look for.
    for place, identifier in enumerate(("baseline", "cached-input")):
        document["variants"][place]["id"] = identifier
    return msgspec.convert(document, Report)

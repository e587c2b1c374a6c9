"""A small literal report, and ways to bend it."""

from __future__ import annotations

from typing import Any

import msgspec

from tfaudit.records import (
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
    Stage,
    Status,
    TargetSummary,
    VariantSummary,
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
    """Every status once, a second failure, and two checks that are not built yet."""
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
        check("2.2", Status.UNKNOWN, summary="This check is not implemented yet.", pending=True),
        check("2.3", Status.UNKNOWN, summary="This check is not implemented yet.", pending=True),
        check("4.1", Status.FAIL, gain=interval(4.5, 0.1), gain_is_bound=True),
        check("5.2", Status.WARN, gain=interval(1.14, 0.02)),
        check("5.3", Status.ERROR, detail="Traceback (most recent call last):\n  ValueError"),
        check("6.1", Status.NOT_APPLICABLE),
    )


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
        **changes,
    }
    found = [item.status.value for item in fields["checks"]]
    fields.setdefault("counts", {status.value: found.count(status.value) for status in Status})
    return Report(**fields)


def empty() -> Report:
    """What is left of a run that was stopped at once."""
    return report(variants=(), comparisons=(), checks=(), program=None, complete=False, notes=())


def poisoned(text: str) -> Report:
    """The report with a text in place of every string, but for the statuses and the numbers' units.

    Whatever text field the report gains, it is poisoned too.
    """

    def poison(value: Any, name: str = "") -> Any:
        if isinstance(value, str):
            return value if name in ("status", "unit", "number") else text
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

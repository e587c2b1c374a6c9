"""Literal evidence for tests: rates by variant, and facts where a check reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tfaudit import checking
from tfaudit.evidence import Evidence, TraceEvidence
from tfaudit.records import (
    Answer,
    Block,
    CallbackFact,
    CheckResult,
    Device,
    Environment,
    Failure,
    Plan,
    Program,
    Resolved,
    Settings,
    Source,
    Stage,
    Target,
    Usage,
    VariantResult,
    WarmUp,
    write,
)
from tfaudit.variants import VARIANTS

CPU = Device(name="/physical_device:CPU:0", kind="CPU")
GPU = Device(name="/physical_device:GPU:0", kind="GPU", description="Some GPU")

RESOLVED = Resolved(jit_compile=False, dtype_policy="float32", run_eagerly=False, optimizer="Adam")

#: Blocks of a variant whose rate is given as one number.
BLOCKS = 6


def block(samples_per_s: float, *, loss: float | None = 0.5, **fields: Any) -> Block:
    """Ten steps of 100 samples each, at that rate."""
    step_ns = round(100 / samples_per_s * 1e9)
    fields = {"steps": 10, "samples": 1000, "step_ns": (step_ns,) * 10, **fields}
    return Block(**{"duration_ns": 10 * step_ns, "loss": loss, **fields})


def usage(**fields: Any) -> Usage:
    """A second in which half of four cores was busy, all of it with the job."""
    quiet = {"duration_s": 1.0, "busy_core_s": (0.5,) * 4, "iowait_core_s": 0.0, "core_limit": 4.0}
    return Usage(**{**quiet, "job_cpu_s": 2.0, **fields})


def in_rounds(blocks: Iterable[Block], launches: int = 1) -> tuple[Block, ...]:
    """Blocks numbered as those of one round after another, dealt to so many launches."""
    blocks = tuple(blocks)
    per_launch = max(1, -(-len(blocks) // launches))
    return tuple(
        msgspec.structs.replace(block, launch=number // per_launch, round=number % per_launch)
        for number, block in enumerate(blocks)
    )


def measured(
    identifier: str, rates: float | Sequence[float] = 100.0, *, launches: int = 1, **fields: Any
) -> VariantResult:
    """A variant that ran to its end, with one block per rate, in so many launches."""
    rates = [rates] * BLOCKS if isinstance(rates, (int, float)) else rates
    fields = {
        "status": "measured",
        "blocks": map(block, rates),
        "resolved": RESOLVED,
        "traces": 1,
        "train_ops": {"MatMul": 2},
        **fields,
    }
    return VariantResult(id=identifier, **{**fields, "blocks": in_rounds(fields["blocks"], launches)})


def learned(
    identifier: str,
    *losses: dict[int, float | None],
    rate: float = 100.0,
    last: float | None = 0.5,
    **fields: Any,
) -> VariantResult:
    """A variant with one dict of losses by step for each of its launches, and the ``last`` of all."""
    blocks = [
        block(rate, loss=last, losses=own if number == 0 else {})
        for own in losses
        for number in range(BLOCKS)
    ]
    warm_ups = tuple(WarmUp(first_step_ns=1, step_ns=()) for _ in losses)
    fields = {"blocks": blocks, "warm_ups": warm_ups, **fields}
    return measured(identifier, launches=max(1, len(losses)), **fields)


def failed(identifier: str, kind: str, phase: str = "measure", *rates: float, **fields: Any) -> VariantResult:
    """A variant that ended badly after some blocks, before it told its configuration."""
    failure = Failure(phase=phase, kind=kind, message=f"{identifier} ended: {kind}.")
    status = "not-run" if kind == "not-run" else "failed"
    blocks = in_rounds(map(block, rates))
    return VariantResult(id=identifier, **{"status": status, "failure": failure, "blocks": blocks, **fields})


def evidence(
    *results: VariantResult,
    program: Program | None = None,
    source: Source | None = None,
    devices: tuple[Device, ...] = (CPU,),
    trace: TraceEvidence | None = None,
    usd_per_hour: float | None = None,
    answers: tuple[Answer, ...] = (),
    **rates: float | Sequence[float],
) -> Evidence:
    """What a run gathered: ``evidence(baseline=100.0, cached_input=140.0)``, further results as they are."""
    variants = (*(measured(name.replace("_", "-"), rate) for name, rate in rates.items()), *results)
    order = list(VARIANTS)
    variants = tuple(sorted(variants, key=lambda result: order.index(result.id)))
    machine = Environment(
        machine="workstation",
        os="Linux",
        cpu="Some CPU",
        cores=2,
        memory_bytes=8 * 2**30,
        devices=devices,
        versions={"python": "3.12.0"},
    )
    return Evidence(
        plan=plan(*(result.id for result in variants), source=source, machine=machine),
        variants=variants,
        machine=machine,
        program=program,
        trace=trace,
        usd_per_hour=usd_per_hour,
        answers=answers,
    )


def plan(
    *variants: str,
    source: Source | None = None,
    machine: Environment | None = None,
    checks: Sequence[str] = (),
    **settings: Any,
) -> Plan:
    """A plan of those variants for ``train.py``."""
    return Plan(
        target=Target(kind="script", path="/project/train.py", name="train.py"),
        working_directory="/project",
        variants=variants,
        checks=tuple(checks),
        settings=Settings(**settings),
        source=source or Source(),
        machine=machine or Environment("workstation", "Linux", "Some CPU", 2, 8 * 2**30, (), {}),
    )


def program(*stages: Stage, form: str = "script", data_kind: str = "tf.data", **fields: Any) -> Program:
    """A program with that pipeline; a batch and a prefetch when none is given."""
    pipeline = stages or (Stage(op="batch", batch_size=32), Stage(op="prefetch", buffer_size=-1))
    return Program(**{"form": form, "data_kind": data_kind, "pipeline": pipeline, **fields})


#: A program whose map runs serially.
SERIAL = program(
    Stage(op="map", function="decode", location="/project/data.py:12"),
    Stage(op="batch", batch_size=32),
    Stage(op="prefetch", buffer_size=-1),
)


def callback(
    name: str, module: str = "keras.src.callbacks", *bases: str, kept: bool = True, **options: str
) -> CallbackFact:
    return CallbackFact(name=name, module=module, bases=bases, kept=kept, options=options)


def judged(number: str, given: Evidence) -> CheckResult:
    """What the check of that number says of the evidence."""
    (result,) = checking.run_checks(given, checking.choose([number]).values())
    return result


def run_folder(folder: Path, given: Evidence, *, without: Sequence[str] = ()) -> Path:
    """Write the evidence as a finished run's folder; variants in ``without`` left no result."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "plan.json", given.plan)
    for result in given.variants:
        place = folder / "variants" / result.id
        place.mkdir(parents=True)
        if result.id not in without:
            write(place / "result.json", result)
    return folder

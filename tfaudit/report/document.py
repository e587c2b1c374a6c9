"""From evidence to the report document: the one place where measurements become a report."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from datetime import datetime, timezone

from .. import __version__, stability
from ..checking import Check, percent, run_checks
from ..evidence import TRACE_ALONE, Evidence, block_rates, samples_per_s, scaled
from ..mapcosts import map_costs
from ..records import (
    SCHEMA_VERSION,
    Block,
    CheckResult,
    Comparison,
    Interval,
    Report,
    Status,
    TargetSummary,
    VariantResult,
    VariantSummary,
)
from ..statistics import median_interval, verdict
from ..trace import verdicts
from ..variants import VARIANTS

#: What is compared with what: every timed variant with the baseline, and these pairs besides.
FURTHER_PAIRS = (
    ("xla", "no-xla"),
    ("input-only", "cached-input"),
    ("batch-x2", "cached-input"),
    ("batch-x4", "cached-input"),
)

LEFT_OUT = (
    "Left out of every variant: validation, callbacks that write files, and what happens between two epochs."
)

#: The check whose gain is the job's ceiling.
CEILING = "1.8"


def build(evidence: Evidence, checks: Iterable[Check]) -> Report:
    """Judge the evidence and put everything a reader may want into one document."""
    results = run_checks(evidence, checks)
    return Report(
        schema_version=SCHEMA_VERSION,
        tfaudit_version=__version__,
        created_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        headline=headline(evidence, results),
        complete=not evidence.interrupted,
        target=TargetSummary(
            kind=evidence.plan.target.kind,
            path=target_name(evidence),
            commit=evidence.plan.target.commit,
            arguments=evidence.plan.target.arguments,
        ),
        environment=evidence.machine,
        usd_per_hour=evidence.usd_per_hour,
        counts={status.value: sum(result.status is status for result in results) for status in Status},
        variants=tuple(summarise(evidence, result) for result in evidence.variants),
        comparisons=comparisons(evidence),
        checks=results,
        program=evidence.program,
        notes=notes(evidence),
        trace=evidence.trace,
        work_shares=work_shares(evidence),
    )


def work_shares(evidence: Evidence) -> dict[int, Interval]:
    """The share of the pipeline's work that each weighed stage takes, by its place in the pipeline."""
    return {place: cost.share for place, cost in map_costs(evidence).by_place().items()}


def notes(evidence: Evidence) -> tuple[str, ...]:
    """What a report has to say about its own numbers."""
    launches = max((len(stability.launches(result)) for result in evidence.variants), default=0)
    turns = "Timed variants took turns in short blocks, the others frozen; ratios are taken within rounds."
    if launches <= 1:
        turns += " Each was launched once, so how launches differ is not in the intervals."
    else:
        turns += f" Each was launched {launches} times, and an interval holds what each launch gave."
    alone = ", ".join(result.id for result in evidence.variants if result.alone)
    apart = (
        (
            f"On their own afterwards, not by turns, were measured: {alone}. They failed beside the others,"
            " or memory did not hold them. The machine's drift is in their ratios.",
        )
        if alone
        else ()
    )
    return (turns, *apart, LEFT_OUT)


def target_name(evidence: Evidence) -> str:
    target = evidence.plan.target
    return f"{target.name}:{target.factory}" if target.factory else target.name


def summarise(evidence: Evidence, result: VariantResult) -> VariantSummary:
    """One row of the variants table."""
    rate = samples_per_s(result)
    steps_ms = [ms for block in result.blocks for ms in step_durations_ms(block)]
    steps = sum(block.steps for block in result.blocks)
    samples = sum(block.samples for block in result.blocks)
    price = evidence.usd_per_hour
    return VariantSummary(
        id=result.id,
        title=VARIANTS[result.id].title if result.id in VARIANTS else result.id,
        status=result.status,
        purpose=VARIANTS[result.id].purpose if result.id in VARIANTS else "time",
        failure=result.failure,
        samples_per_s=rate,
        step_ms=median_interval(steps_ms),
        samples_per_usd=scaled(rate, 3600 / price) if rate and price else None,
        compile_s=compile_s(result, steps_ms),
        batch_size=samples / steps if steps else None,
        steps=steps,
        resolved=result.resolved,
        phases=result.phases,
        block_samples_per_s=tuple(block_rates(result.blocks)),
        loss=result.blocks[-1].loss if result.blocks else None,
        notes=result.notes,
    )


def step_durations_ms(block: Block) -> list[float]:
    """Milliseconds per step: each call of the train function, shared among its steps if it runs several."""
    steps_per_call = max(1, round(block.steps / len(block.step_ns))) if block.step_ns else 1
    return [step / 1e6 / steps_per_call for step in block.step_ns]


def compile_s(result: VariantResult, steps_ms: list[float]) -> float | None:
    """What the first step took beyond a steady one: tracing, and compiling where XLA is on."""
    if result.first_step_s is None or not steps_ms:
        return None
    return max(0.0, result.first_step_s - statistics.median(steps_ms) / 1e3)


def comparisons(evidence: Evidence) -> tuple[Comparison, ...]:
    """All pairs of variants of which both were measured."""
    pairs = [(result.id, "baseline") for result in evidence.variants if result.id != "baseline"]
    found = []
    for variant, reference in [*pairs, *FURTHER_PAIRS]:
        ratio = evidence.ratio(variant, to=reference)
        if ratio is not None:
            found.append(
                Comparison(variant=variant, reference=reference, ratio=ratio, verdict=verdict(ratio))
            )
    return tuple(found)


def headline(evidence: Evidence, results: Iterable[CheckResult]) -> str:
    """What bounds this job, how far it is from its ceiling, and the best measured change."""
    baseline = evidence.variant("baseline")
    rate = evidence.samples_per_s("baseline")
    if evidence.plan.target.kind == TRACE_ALONE and evidence.trace and evidence.trace.summary:
        return verdicts.headline(evidence.trace.summary)
    if rate is None:
        failure = baseline.failure if baseline else None
        return f"Nothing was measured. {failure.message if failure else ''}".strip()
    found = {result.number: result for result in results}
    bound = _bound(evidence, found.get(CEILING), rate)
    best = _best_change(found.values())
    return f"{bound} {best}".strip()


def _bound(evidence: Evidence, ceiling: CheckResult | None, rate: Interval) -> str:
    gain = evidence.ratio("cached-input", to="baseline")
    decided = (Status.FAIL, Status.WARN, Status.PASS)
    if ceiling is None or gain is None or ceiling.by_answer or ceiling.status not in decided:
        return f"Training runs at {rate.median:,.0f} samples per second."
    if ceiling.status in (Status.FAIL, Status.WARN):
        word = "Input-bound" if ceiling.status is Status.FAIL else "Partly input-bound"
        share = min(1.0, 1 / gain.median)
        return f"{word}: training reaches {percent(share)} of what the model could do on cached input."
    return f"Not input-bound: cached input gives {gain.median:.2f}×."


def _best_change(results: Iterable[CheckResult]) -> str:
    changes = [
        result
        for result in results
        if result.gain and not result.gain_is_bound and result.status in (Status.WARN, Status.FAIL)
    ]
    if not changes:
        return ""
    best = max(changes, key=lambda result: result.gain.median if result.gain else 0.0)
    assert best.gain is not None
    return f"Best measured change: {best.summary}"

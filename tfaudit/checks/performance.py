"""Performance analysis.

Section 1 of the checklist: what is measured and how it looks.
"""

from __future__ import annotations

from ..checking import (
    Outcome,
    check,
    failed,
    manual,
    passed,
    percent,
    planned,
    unknown,
    warned,
)
from ..evidence import Evidence
from ..records import Block, Interval, VariantResult
from ..statistics import ratio_interval

#: One rule for every measured gain: worth a warning from 5 %, a failure from a quarter.
WARN_GAIN, FAIL_GAIN = 1.05, 1.25

GAIN_RULE = f"lower end of the interval ≥ {WARN_GAIN:g}× warns, ≥ {FAIL_GAIN:g}× fails"

#: Identical processes on a shared host differ by up to a tenth; less than that is no drift.
WARN_DRIFT, FAIL_DRIFT = 0.10, 0.25

#: A step beyond twice the median is an outlier; they may take a tenth of the time.
OUTLIER_FACTOR, WARN_OUTLIER_SHARE = 2.0, 0.10

#: A smaller last batch costs a trace, and a tf.function's first call one more when it makes variables:
#: up to three are usual, more is retracing.
WARN_TRACES, FAIL_TRACES = 4, 6

#: Input alone this much faster than the model is not what holds it up; on a CPU both want the same cores.
ENOUGH_HEADROOM = 1.25

FOR_SHARED_CORES = (
    "The pipeline alone is fast enough, but it takes cores that training needs. Have it do less per step:"
    " cache() what is the same in every epoch, map whole batches (after batch), prepare the rest once and"
    " store it."
)

#: A repeated first batch stands for the job's batches only if it is of about their size.
MOST_BATCH_RATIO = 1.25

CALLBACK_FIX = """\
from tfaudit import ThroughputCallback
model.fit(…, callbacks=[ThroughputCallback(usd_per_hour=…)])"""


@check(number="1.1", needs=("program", "source"))
def throughput_reported(evidence: Evidence) -> Outcome:
    """Throughput reporting

    What it looks at
    The callbacks given to fit, and whether the project's source speaks of a rate.

    Why it matters
    A rate that nobody sees can halve without anyone noticing; it is what every cost follows from.

    How to fix
    Add tfaudit.ThroughputCallback to fit's callbacks: it adds samples per second, and per dollar, to the
    progress bar, the logs and TensorBoard.
    """
    program, source = evidence.program, evidence.source
    assert program is not None
    for callback in program.callbacks:
        if "throughput" in callback.name.lower():
            return passed(f"{callback.name} reports it.")
        if callback.name == "TensorBoard" and callback.options.get("update_freq", "epoch") != "epoch":
            return passed("TensorBoard writes its steps per second (update_freq is set).")
    if source.throughput:
        return passed(f"The program reports a rate of its own ({source.throughput}).")
    if program.form in ("factory", "builders"):
        return manual("The target has no call of fit: does training report samples per second?")
    return warned("Nothing in the program reports samples per second.", fix=CALLBACK_FIX)


@check(number="1.2", needs=("baseline", "price"))
def samples_per_dollar(evidence: Evidence) -> Outcome:
    """Samples per dollar

    What it looks at
    The baseline's samples per second × 3600 ÷ the machine's price per hour.

    Why it matters
    It is the one number in which a faster program and a cheaper machine can be compared.

    How to fix
    Raise samples per second with the measured findings below, or choose a cheaper machine that is
    no slower for this job.
    """
    value = evidence.samples_per_usd("baseline")
    if value is None or evidence.usd_per_hour is None:
        return unknown("No block of the baseline was measured.")
    return passed(
        f"{value.median:,.0f} samples per dollar at ${evidence.usd_per_hour:g} per hour.",
        baseline_samples_per_usd=value,
        baseline_samples_per_s=evidence.samples_per_s("baseline"),
        price_per_hour_usd=evidence.usd_per_hour,
    )


@check(
    number="1.3",
    needs=("baseline",),
    uses=("cached-input", "no-xla", "xla"),
    threshold=f"second half slower by ≥ {percent(WARN_DRIFT)} warns, by ≥ {percent(FAIL_DRIFT)} fails;"
    f" steps beyond {OUTLIER_FACTOR:g}× the median taking ≥ {percent(WARN_OUTLIER_SHARE)} of the time warn",
)
def stable_throughput(evidence: Evidence) -> Outcome:
    """Stability of throughput

    What it looks at
    The baseline's blocks in order: the second half against the first, the spread between blocks, and
    steps that took more than twice the median.

    Why it matters
    A rate that falls, or steps that stall now and then, point at buffers that run dry, memory that
    fills, or a machine that is shared; an average hides them.

    How to fix
    Look at what happens at the slow steps: the shuffle buffer refilling, a callback, garbage
    collection, other jobs on the machine. Then measure again for longer with --time-budget.
    """
    rates = evidence.rates("baseline")
    baseline = evidence.variant("baseline")
    assert baseline is not None
    if len(rates) < 4:
        return unknown(f"{len(rates)} blocks are too few to see a trend: raise --steps or --time-budget.")
    half = len(rates) // 2
    drift = ratio_interval(rates[-half:], rates[:half])
    assert drift is not None
    share = outlier_share(baseline.blocks)
    facts = {
        "second_half_over_first_half_ratio": drift,
        "coefficient_of_variation_fraction": _variation(rates),
        "time_in_outlier_steps_fraction": share,
        "blocks": len(rates),
    }
    if drift.high < 1 and drift.median <= 1 - WARN_DRIFT and machine_slowed(evidence):
        return unknown(
            f"Throughput fell to {drift.median:.2f}×, and that of other variants in the same rounds fell too:"
            " the machine slowed, whatever the job does.",
            **facts,
        )
    if drift.high < 1 and drift.median <= 1 - FAIL_DRIFT:
        return failed(f"Throughput fell to {drift.median:.2f}× within the run.", **facts)
    if drift.high < 1 and drift.median <= 1 - WARN_DRIFT:
        return warned(f"Throughput fell to {drift.median:.2f}× within the run.", **facts)
    if share >= WARN_OUTLIER_SHARE:
        return warned(
            f"{percent(share)} of the time went into unusually long steps"
            f"{', most of them the first of an epoch' if firsts_prevail(baseline.blocks) else ''}.",
            **facts,
        )
    return passed("No fall over the run and few unusually long steps.", **facts)


def machine_slowed(evidence: Evidence) -> bool:
    """Whether another variant, which took turns with the baseline, fell as well."""
    for result in evidence.variants:
        rates = evidence.rates(result.id)
        half = len(rates) // 2
        drift = ratio_interval(rates[-half:], rates[:half]) if half >= 2 else None
        if result.id != "baseline" and drift and drift.median <= 1 - WARN_DRIFT:
            return True
    return False


def outlier_share(blocks: tuple[Block, ...]) -> float:
    """Share of the timed nanoseconds that went into steps beyond `OUTLIER_FACTOR` × the median step."""
    steps = sorted(step for block in blocks for step in block.step_ns)
    if not steps:
        return 0.0
    limit = OUTLIER_FACTOR * steps[len(steps) // 2]
    return sum(step for step in steps if step > limit) / sum(steps)


def firsts_prevail(blocks: tuple[Block, ...]) -> bool:
    """Whether more than half of the time in outlier steps went into first steps of an epoch."""
    steps = sorted(step for block in blocks for step in block.step_ns)
    limit = OUTLIER_FACTOR * steps[len(steps) // 2]
    firsts = [
        block.step_ns[index]
        for block in blocks
        for index in block.epoch_starts
        if index < len(block.step_ns) and block.step_ns[index] > limit
    ]
    return 2 * sum(firsts) > sum(step for step in steps if step > limit)


def _variation(rates: list[float]) -> float:
    mean = sum(rates) / len(rates)
    return float((sum((rate - mean) ** 2 for rate in rates) / len(rates)) ** 0.5 / mean)


@check(
    number="1.8",
    needs=("baseline", "cached-input"),
    uses=("input-only", "price"),
    threshold=f"cached ÷ baseline: {GAIN_RULE}",
)
def input_bound_training(evidence: Evidence) -> Outcome:
    """Waiting for input

    What it looks at
    Samples per second as the job is, against the same job fed for ever from one cached batch.

    Why it matters
    The ratio is what fixing the input pipeline can give at most; on a faster accelerator this job
    would only wait longer.

    How to fix
    Find the slow stage: compare input-only with cached-input (3.3), add parallel calls and a prefetch
    (4.1), take Python out of the pipeline (5.5), then measure again.
    """
    if reason := incomparable(evidence):
        return unknown(reason)
    gain = evidence.ratio("cached-input", to="baseline")
    if gain is None:
        return unknown("No block of either variant was measured.")
    facts = {
        "cached_input_over_baseline_ratio": gain,
        "baseline_samples_per_s": evidence.samples_per_s("baseline"),
        "cached_input_samples_per_s": evidence.samples_per_s("cached-input"),
        "target_samples_per_usd": evidence.samples_per_usd("cached-input"),
    }
    headroom = evidence.ratio("input-only", to="cached-input")
    fix = FOR_SHARED_CORES if headroom and headroom.low >= ENOUGH_HEADROOM else ""
    share = f"Training reaches {percent(min(1.0, 1 / gain.median))} of what it does on cached input."
    if gain.low >= FAIL_GAIN:
        return failed(share, fix=fix, at_most=gain, **facts)
    if gain.low >= WARN_GAIN:
        return warned(share, fix=fix, at_most=gain, **facts)
    if gain.median >= WARN_GAIN and gain.high >= FAIL_GAIN:
        return unknown(
            f"Cached input gives {gain.median:.2f}×, too uncertain to call: measure longer.", **facts
        )
    return passed(f"Cached input gives {gain.median:.2f}×: no wait that was measured.", **facts)


def incomparable(evidence: Evidence) -> str:
    """Why cached input and the baseline cannot be compared, in a sentence; empty when they can."""
    baseline, cached = evidence.variant("baseline"), evidence.variant("cached-input")
    if baseline is None or cached is None:
        return ""
    if (baseline.traces or 0) >= WARN_TRACES and (cached.traces or 0) < (baseline.traces or 0):
        return (
            "The train step was traced again and again for new shapes, which one cached batch never is: the"
            " two cannot be compared before that is mended (5.4)."
        )
    usual, repeated = mean_batch(baseline), mean_batch(cached)
    if usual and repeated and not 1 / MOST_BATCH_RATIO <= repeated / usual <= MOST_BATCH_RATIO:
        return (
            f"Cached input repeats a first batch of {repeated:g} samples, but the job's batches hold"
            f" {usual:.3g} on average: the two cannot be compared."
        )
    return ""


def mean_batch(result: VariantResult) -> float | None:
    """Samples per step over all blocks."""
    steps = sum(block.steps for block in result.blocks)
    return sum(block.samples for block in result.blocks) / steps if steps else None


def input_gain(evidence: Evidence) -> Interval | None:
    """What cached input gives; for checks that weigh a fault of the pipeline by what it costs."""
    return None if incomparable(evidence) else evidence.ratio("cached-input", to="baseline")


planned(
    __name__,
    {
        "1.4": ("profiling_available", "Profiling on demand"),
        "1.5": ("device_memory", "Device memory use"),
        "1.6": ("gpu_utilisation", "GPU utilisation"),
        "1.7": ("system_bottleneck", "CPU, disk and network load"),
    },
)

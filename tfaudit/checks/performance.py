"""Performance analysis.

Section 1 of the checklist: what is measured and how it looks.
"""

from __future__ import annotations

from statistics import median

from .. import stability
from ..checking import (
    Outcome,
    check,
    failed,
    manual,
    passed,
    percent,
    unknown,
    warned,
)
from ..evidence import Evidence
from ..program.callbacks import is_keras
from ..program.names import is_of
from ..records import Interval, Program, Source, Target, VariantResult
from ..stalls import as_facts, stalls

#: One rule for every measured gain: worth a warning from 5 %, a failure from a quarter.
WARN_GAIN, FAIL_GAIN = 1.05, 1.25

GAIN_RULE = f"lower end of the interval ≥ {WARN_GAIN:g}× warns, ≥ {FAIL_GAIN:g}× fails"

#: Identical processes on a shared host differ by up to a tenth; less than that is no drift.
WARN_DRIFT, FAIL_DRIFT = 0.10, 0.25

#: A trend is one when chance would show it less often than this.
SIGNIFICANT = 0.05

#: Steps that are unusually long may take a tenth of the time.
WARN_OUTLIER_SHARE = 0.10

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

#: Shares of a step known no better than this are not put into words.
TOO_WIDE_A_SHARE = 0.15

#: A repeated first batch stands for the job's batches only if it is of about their size.
MOST_BATCH_RATIO = 1.25

FOR_EPOCH_STARTS = (
    "Let one iterator last: dataset.repeat() with steps_per_epoch in fit, so that buffers are filled once;"
    " and a smaller shuffle buffer, since it is filled before an epoch's first batch."
)

#: Calls by which a program has itself profiled, and callbacks that make them.
PROFILER_CALLS = frozenset({"Profile", "start", "trace", "trace_on"})
PROFILERS = ("tensorflow.profiler", "tensorflow.python.profiler")
BOARDS = ("tensorboard", "tb-nightly")

PROFILE_FIX = """\
if os.environ.get("PROFILE"):
    callbacks.append(keras.callbacks.TensorBoard("logs", profile_batch=(100, 110)))"""

NO_BOARD = (
    "TensorBoard is not installed here, as TensorFlow no longer brings it from 2.21 on: the callback ends the"
    " run with an error."
)

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
    if not program.has_fit:
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
    threshold=f"a trend (p < {SIGNIFICANT:g}) to a second half slower by ≥ {percent(WARN_DRIFT)} warns,"
    f" ≥ {percent(FAIL_DRIFT)} fails; steps beyond {stability.OUTLIER_FACTOR:g}× the median, or stalls where"
    f" epochs begin, taking ≥ {percent(WARN_OUTLIER_SHARE)} of the time warn",
)
def stable_throughput(evidence: Evidence) -> Outcome:
    """Stability of throughput

    What it looks at
    The baseline's rounds in order: whether there is a trend, the second half against the first, the spread
    between rounds, steps that took more than twice the median, and the first steps of epochs. The end of an
    epoch's iterator is not timed; TensorFlow at times waits there for the thread that tunes it.

    Why it matters
    A rate that falls, or steps that stall now and then, point at buffers that run dry, memory that
    fills, or a machine that is shared; an average hides them.

    How to fix
    Look at what happens at the slow steps: the shuffle buffer refilling, a callback, garbage
    collection, other jobs on the machine. Then measure again for longer with --time-budget.
    """
    baseline = evidence.variant("baseline")
    assert baseline is not None
    blocks = baseline.blocks
    drift, p_value = stability.drift(baseline), stability.drift_p_value(baseline)
    if drift is None:
        return unknown(f"{len(blocks)} rounds are too few to see a trend: raise --steps or --time-budget.")
    outliers, epoch_starts = stability.outlier_share(blocks), stability.epoch_start_share(blocks)
    stalls = stability.epoch_stalls_ns(blocks)
    facts = {
        "second_half_over_first_half_ratio": drift,
        "p_value_of_the_trend": p_value,
        "coefficient_of_variation_between_rounds_fraction": stability.variation(evidence.rates("baseline")),
        "time_in_outlier_steps_fraction": outliers,
        "steps_beyond_three_robust_sigma": stability.beyond_three_sigma(blocks),
        "epochs_begun": len(stalls),
        "stall_where_an_epoch_begins_ms": median(stalls) / 1e6 if stalls else None,
        "time_in_stalls_where_epochs_begin_fraction": epoch_starts if stalls else None,
        "steps_until_steady": stability.steps_to_steady(baseline),
        "steps_of_warm_up": stability.warm_up_steps(baseline),
        "rounds": len(blocks),
    }
    fell = p_value < SIGNIFICANT and drift.median <= 1 - WARN_DRIFT
    if fell and machine_slowed(evidence):
        return unknown(
            f"Throughput fell to {drift.median:.2f}×, and that of other variants in the same rounds fell too:"
            " the machine slowed, or what all of them share does.",
            **facts,
        )
    if fell:
        verdict = failed if drift.median <= 1 - FAIL_DRIFT else warned
        return verdict(f"Throughput fell to {drift.median:.2f}× within the run.", **facts)
    if epoch_starts >= WARN_OUTLIER_SHARE:
        summary = f"{percent(epoch_starts)} of the time went into waiting where an epoch begins."
        return warned(summary, fix=FOR_EPOCH_STARTS, **facts)
    if outliers >= WARN_OUTLIER_SHARE:
        return warned(f"{percent(outliers)} of the time went into unusually long steps.", **facts)
    none_begun = "" if stalls else " No epoch began meanwhile."
    return passed(f"No fall over the run and few unusually long steps.{none_begun}", **facts)


def machine_slowed(evidence: Evidence) -> bool:
    """Whether another variant, which took turns with the baseline, fell as well."""
    others = [result for result in evidence.variants if result.id != "baseline"]
    falling = [result for result in others if stability.drift_p_value(result) < SIGNIFICANT]
    drifts = [stability.drift(result) for result in falling]
    return any(drift is not None and drift.median <= 1 - WARN_DRIFT for drift in drifts)


PROFILING_QUESTION = "Can the profiler be switched on in training, for a few steps in the middle of it?"


@check(number="1.4", needs=("program", "source"), uses=("machine", "trace"), question=PROFILING_QUESTION)
def profiling_available(evidence: Evidence) -> Outcome:
    """Profiling on demand

    What it looks at
    TensorBoard among fit's callbacks, calls of it or of tf.profiler in the source, also where an option has
    to ask for them; and whether the callback would find TensorBoard, which TensorFlow no longer installs from
    2.21 on. Without any: whether this audit could profile the job from outside.

    Why it matters
    What slows a run down on the machine that trains, in its second hour, shows in a profile taken there and
    then. That should not take a change of the program.

    How to fix
    A callback that an option switches on: keras.callbacks.TensorBoard("logs", profile_batch=(100, 110)), with
    `pip install tensorboard` from TensorFlow 2.21 on; or tf.profiler.experimental.server.start(6009). What
    they write is read by `tfaudit trace logs`.
    """
    program, source = evidence.program, evidence.source
    assert program is not None
    if found := profiled_by(source):
        return passed(f"{found} switches the profiler on.")
    if board := board_of(program, source):
        if lacks_board(evidence.machine.versions):
            return warned(f"{board} could, but {NO_BOARD}", fix="pip install tensorboard")
        return passed(f"{board} profiles the batches that profile_batch names.")
    if not evidence.why_missing("trace"):
        return passed(
            "Nothing in the program switches the profiler on, but it works from outside, as in this audit:"
            f" tfaudit run {_as_typed(evidence.plan.target)} --variant profiled."
        )
    if not program.has_fit:
        return manual(f"The target has no call of fit. {PROFILING_QUESTION}")
    if evidence.trace is None:
        return unknown(
            "Nothing in the program can switch the profiler on; whether it works from outside was not tried"
            " (--variant profiled)."
        )
    fix = PROFILE_FIX
    if lacks_board(evidence.machine.versions):
        fix += "\n# pip install tensorboard: TensorFlow no longer brings it from 2.21 on"
    return warned("Nothing in the program can switch the profiler on.", fix=fix)


def _as_typed(target: Target) -> str:
    return f"{target.name}:{target.factory}" if target.factory else target.name


def profiled_by(source: Source) -> str:
    """The first call of TensorFlow's profiler; empty without any."""
    for full, place in source.uses.items():
        is_profiler = full.startswith(PROFILERS) or full == "tensorflow.summary.trace_on"
        if is_profiler and is_of(full, PROFILER_CALLS):
            return f"{full} ({place})"
    return ""


def board_of(program: Program, source: Source) -> str:
    """Keras's TensorBoard among fit's callbacks or in the source; empty without it."""
    for callback in program.callbacks:
        if is_keras(callback, "TensorBoard"):
            batches = callback.options.get("profile_batch", "")
            return f"{callback.name} (profile_batch={batches or 'default'})"
    for full, place in source.uses.items():
        if is_of(full, {"TensorBoard"}):
            return f"{full} ({place})"
    return ""


def lacks_board(versions: dict[str, str]) -> bool:
    """Whether TensorBoard is known to be missing: older versions of TensorFlow always bring it."""
    parts = versions.get("tensorflow", "").split(".")[:2]
    if not all(part.isdecimal() for part in parts) or len(parts) < 2:
        return False
    is_later = (int(parts[0]), int(parts[1])) >= (2, 21)
    return is_later and not any(name in versions for name in BOARDS)


@check(
    number="1.8",
    needs=("baseline", "cached-input"),
    uses=("constant-batch", "source-cached", "input-only", "price", "machine", "program"),
    threshold=f"cached ÷ baseline: {GAIN_RULE}",
)
def input_bound_training(evidence: Evidence) -> Outcome:
    """Waiting for input

    What it looks at
    Samples per second as the job is, against the same job fed for ever from one cached batch; and how its
    time divides into computing, copying to the device, preprocessing and fetching, from variants that each
    leave out one of them.

    Why it matters
    The ratio is what fixing the input pipeline can give at most; on a faster accelerator this job
    would only wait longer.

    How to fix
    Look in the report's input pipeline for the stage that takes most. What parallel calls and a prefetch
    give is measured (4.1); then come less work per epoch (4.2), compiled maps (4.5) and maps without Python
    (5.5). Change one, then measure again.
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
    shares = stalls(evidence)
    facts |= as_facts(shares)
    share = f"Training reaches {percent(min(1.0, 1 / gain.median))} of what it does on cached input."
    share += divided(shares)
    if gain.low >= FAIL_GAIN:
        return failed(share, fix=fix, at_most=gain, **facts)
    if gain.low >= WARN_GAIN:
        return warned(share, fix=fix, at_most=gain, **facts)
    if gain.median >= WARN_GAIN and gain.high >= FAIL_GAIN:
        return unknown(
            f"Cached input gives {gain.median:.2f}×, too uncertain to call: measure longer.", **facts
        )
    return passed(f"Cached input gives {gain.median:.2f}×: no wait that was measured.", **facts)


def divided(shares: dict[str, Interval]) -> str:
    """A sentence on what a step's time goes to, where more is known than the ratio says."""
    if len(shares) < (2 if "preprocessing" in shares else 3):
        return ""
    if any((share.high - share.low) / 2 > TOO_WIDE_A_SHARE for share in shares.values()):
        return ""
    known = {part: max(0.0, share.median) for part, share in shares.items()}
    # A share below 0 is noise; what the others have too much by is shared among them.
    parts = [f"{percent(share / sum(known.values()))} is {part}" for part, share in known.items()]
    return f" Of a step's time {', '.join(parts[:-1])} and {parts[-1]}."


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
    if baseline.cache_filled is False:
        return (
            "The pipeline's cache() was still being filled: its first epoch says nothing of the others, which"
            " read from it."
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

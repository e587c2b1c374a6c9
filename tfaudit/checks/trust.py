"""Can these numbers be trusted?

A section of our own: the audit of the audit.
"""

from __future__ import annotations

from ..checking import Outcome, check, passed, percent, unknown, warned
from ..evidence import Evidence, timed_blocks
from ..numerics import diverged_at, follows
from ..records import Interval, VariantResult
from ..report.trace_words import counted
from ..stability import launches
from ..statistics import rate_interval, verdict
from ..utilisation import load
from ..variants import VARIANTS
from .gpu import NUMERICS_RULE, loss_facts, why_not_trusted
from .performance import WARN_TRACES

#: Ratios are taken within rounds, where a drift of the machine cancels; beyond a quarter, either way, the
#: rate itself, and with it the samples per dollar, says little.
WARN_NOISE = 0.25

PRECISIONS_AND_COMPILATION = ("bfloat16", "float16", "xla", "no-xla")

FOR_NO_NUMBER = (
    "Scale inputs and targets to about 1, lower the learning rate, or clip gradients (clipnorm). To find the"
    " op: tf.debugging.enable_check_numerics()."
)


@check(
    number="8.1",
    needs=("baseline",),
    uses=tuple(VARIANTS),
    threshold=f"half the width of the 95 % interval ≥ {percent(WARN_NOISE)} of the rate warns; so does a"
    " difference between two runs of the same program",
)
def baseline_noise(evidence: Evidence) -> Outcome:
    """Noise of the baseline

    What it looks at
    The interval of the baseline's samples per second, over its rounds and launches, and how narrow the
    intervals of the comparisons became.

    Why it matters
    A gain smaller than the noise cannot be told from none.

    How to fix
    Give it longer (--time-budget), and keep the machine free of other work.
    """
    rate, baseline = evidence.samples_per_s("baseline"), evidence.variant("baseline")
    if rate is None or baseline is None:
        return unknown("No block of the baseline was measured.")
    noise = rate.margin
    rates, busy, control = rates_by_launch(baseline), load(baseline.blocks), same_again(evidence)
    ratios = [evidence.ratio(result.id, to="baseline") for result in evidence.variants]
    margins = [ratio.margin for ratio in ratios if ratio]
    facts = {
        "noise_fraction": noise,
        "widest_half_interval_of_a_comparison_fraction": max(margins, default=None),
        "rounds": len(baseline.blocks),
        "launches": len(rates),
        "fastest_launch_over_slowest_ratio": max(rates) / min(rates),
        "same_program_once_more_over_baseline_ratio": control,
        "other_processes_share_of_busy_cores_fraction": busy.others_fraction if busy else None,
        "not_beside_the_others": [result.id for result in evidence.variants if result.alone],
    }
    summary = f"The baseline is known to ±{percent(noise)}, from {counted(len(baseline.blocks), 'round')}"
    summary += f" in {counted(len(rates), 'launch', 'launches')}."
    if control and verdict(control) != "no difference":
        summary += (
            f" The same program, as no-xla, came out {control.median:.2f}× as fast: trust no smaller effect."
        )
        return warned(summary, **facts)
    return (warned if noise >= WARN_NOISE else passed)(summary, **facts)


def same_again(evidence: Evidence) -> Interval | None:
    """no-xla over the baseline where XLA is off anyway, so that both are the same program."""
    both = [evidence.variant(name) for name in ("baseline", "no-xla")]
    if any(result is None or result.resolved is None or result.resolved.jit_compile for result in both):
        return None
    return evidence.ratio("no-xla", to="baseline")


def rates_by_launch(result: VariantResult) -> list[float]:
    """Samples per second of each launch that was timed."""
    totals = [rate_interval(timed_blocks(blocks)) for blocks in launches(result)]
    return [total.median for total in totals if total]


@check(number="8.2", uses=tuple(VARIANTS))
def variants_completed(evidence: Evidence) -> Outcome:
    """Completed variants

    What it looks at
    How each variant's process ended.

    Why it matters
    What a failed variant would have shown is unknown, not fine.

    How to fix
    Each failure is told with its phase and the end of its output; its folder in the run has the rest.
    """
    bad = {
        result.id: result.failure.message
        for result in evidence.variants
        if result.failure and not result.failure.is_inapplicable and not is_answer(result)
    }
    if not evidence.variants:
        return unknown("No variant was run.")
    if bad:
        return warned(f"{len(bad)} of {len(evidence.variants)} variants did not end well.", failed=bad)
    return passed(f"All {len(evidence.variants)} variants ran.")


def is_answer(result: VariantResult) -> bool:
    """Whether a variant's failure is what it was run to find out: that a larger batch does not fit."""
    tried = result.id in VARIANTS and VARIANTS[result.id].for_accelerators
    return tried and result.failure is not None and result.failure.kind == "memory"


@check(number="8.3", needs=("trace",), threshold="a warning on the trace's health warns")
def trace_health(evidence: Evidence) -> Outcome:
    """Health of the trace

    What it looks at
    What the reader noticed: planes without events, steps without markers, copies without a direction,
    events with impossible times, files that could not be read, the profiler's own remarks.

    Why it matters
    A figure from half a trace looks like any other figure.

    How to fix
    Each remark says what to do; then profile again, a few steps in the middle of training.
    """
    assert evidence.trace is not None and evidence.trace.summary is not None
    remarks = evidence.trace.summary.health
    warnings = [remark.message for remark in remarks if remark.level == "warning"]
    facts = {"warning": warnings, "note": [each.message for each in remarks if each.level != "warning"]}
    if warnings:
        return warned(f"{counted(len(warnings), 'warning')} on the trace: {warnings[0]}", **facts)
    return passed("Nothing in the trace casts doubt on its figures.", **facts)


@check(number="8.4", needs=("baseline",), uses=(*VARIANTS, "program"))
def resolved_configuration(evidence: Evidence) -> Outcome:
    """Resolved configuration

    What it looks at
    The dtype policy and jit_compile that were in force in each variant, read back from the model; and what
    AUTOTUNE had chosen for the baseline's pipeline when its measurement ended, as TensorFlow names the stages
    that it has made of the program's.

    Why it matters
    Keras turns jit_compile off without failing, and a program's own policy overrides the one set for a
    variant; a comparison would then compare nothing.

    How to fix
    Read the reason beside each variant that took no effect; compare only what ran.
    """
    baseline = evidence.variant("baseline")
    resolved = baseline.resolved if baseline else None
    ineffective = {
        result.id: result.failure.message
        for result in evidence.variants
        if result.failure and result.failure.is_inapplicable
    }
    facts = {
        "no_effect": ineffective,
        "jit_compile": resolved.jit_compile if resolved else None,
        "dtype_policy": resolved.dtype_policy if resolved else None,
        "steps_per_execution": resolved.steps_per_execution if resolved else None,
        "tf.data_option": evidence.program.options if evidence.program else None,
        "autotune_chose": {
            f"{tuned.parameter} of {tuned.stage}": tuned.value
            for tuned in (baseline.tuned if baseline else None) or ()
        },
    }
    if ineffective:
        names = ", ".join(ineffective)
        return passed(f"Told apart from the others, since they took no effect: {names}.", **facts)
    return passed("Every variant that ran had the setting it was named for.", **facts)


@check(
    number="8.5",
    needs=("baseline",),
    uses=tuple(VARIANTS),
    threshold=f"≥ {WARN_TRACES} traces in a variant warn",
)
def tracing_settled(evidence: Evidence) -> Outcome:
    """Tracing and compiling

    What it looks at
    How often each variant traced its train step, and the first step's time, kept apart from the rest.

    Why it matters
    A step that traces or compiles takes seconds; among the timed steps it would falsify the rate.

    How to fix
    See 5.4 for what makes the train step trace again.
    """
    traces = {result.id: result.traces for result in evidence.variants if result.traces is not None}
    if not traces:
        return unknown("The train step is no traced function, so its traces cannot be counted.")
    most = max(traces.values())
    if most >= WARN_TRACES:
        return warned(f"{most} traces in one variant: some may be among the timed steps.", traces=traces)
    return passed(f"The train step was traced at most {most} times in any variant.", traces=traces)


@check(
    number="8.6",
    needs=("baseline",),
    uses=PRECISIONS_AND_COMPILATION,
    threshold=NUMERICS_RULE,
)
def loss_followed(evidence: Evidence) -> Outcome:
    """Numerics

    What it looks at
    The loss of each variant against the baseline's, after the same steps from the same seed, and how far
    apart two launches of the baseline lie, which differ in their seed. The baseline's own must be a number.

    Why it matters
    A variant that is fast because it no longer learns has gained nothing.

    How to fix
    Do not take a change whose loss leaves the baseline's; with float16 keep the loss scaled, and keep the
    last activation and the loss in float32.
    """
    found = {
        result.id: numbers
        for result in evidence.variants
        if result.id != "baseline" and (numbers := evidence.numerics(result.id)) is not None
    }
    facts = loss_facts(evidence, *found)
    baseline = evidence.variant("baseline")
    if baseline and (step := diverged_at(baseline)):
        summary = f"The job's own loss is no number, from step {step} on at the latest: it learns nothing."
        return warned(f"{summary} No variant can be compared with it.", fix=FOR_NO_NUMBER, **facts)
    astray = {name: why_not_trusted(evidence, name) for name in found}
    astray = {name: reason for name, reason in astray.items() if reason}
    if astray:
        name, reason = next(iter(astray.items()))
        others = f" ({counted(len(astray), 'variant')} in all)" if len(astray) > 1 else ""
        return warned(f"{name}: {reason}{others}.", **facts)
    if not found and not any(map(evidence.variant, PRECISIONS_AND_COMPILATION)):
        return unknown("No variant that changes precision or compilation was run.", **facts)
    if not found:
        return unknown("No two variants gave a loss after the same number of steps.", **facts)
    unsettled = [name for name, numbers in found.items() if follows(numbers) is None]
    if len(unsettled) == len(found):
        return unknown("How far the loss depends on the seed is not known: it takes two launches.", **facts)
    return passed(
        f"The loss stayed as close as another seed's would in {counted(len(found), 'variant')}, for the"
        f" {counted(min(numbers.step for numbers in found.values()), 'step')} that were compared.",
        **facts,
    )


@check(number="8.7", needs=("program",))
def callbacks_left_out(evidence: Evidence) -> Outcome:
    """Left out of the job

    What it looks at
    Callbacks that write files or talk to services; they run in no variant.

    Why it matters
    The audited job is faster than the real one by what they cost.

    How to fix
    Nothing; bear it in mind when comparing with a full run.
    """
    program = evidence.program
    assert program is not None
    left_out = {item.name: item.reason for item in program.callbacks if not item.kept}
    if not left_out:
        return passed("Nothing was left out.")
    return passed(f"Left out: {', '.join(left_out)}.", left_out=left_out)


@check(number="8.8", needs=("machine",))
def machine_limits(evidence: Evidence) -> Outcome:
    """Limits of this machine

    What it looks at
    Whether there is an accelerator here.

    Why it matters
    On a CPU the gain of precision and compilation differs from that on a GPU, and there is no device to
    stand idle.

    How to fix
    Run the same audit on the machine that trains.
    """
    if evidence.accelerators:
        return passed(f"The job ran on {', '.join(evidence.accelerators)}.")
    return unknown(
        "No accelerator here: device use, copies and kernels could not be seen, and precision and XLA are"
        " judged by what they do on this CPU."
    )

"""From evidence to the report document."""

from __future__ import annotations

import pytest
from checks.builders import (
    RESOLVED,
    SERIAL,
    block,
    evidence,
    failed,
    measured,
    program,
)
from msgspec.structs import replace

from tfaudit.checking import choose
from tfaudit.evidence import Evidence
from tfaudit.records import Block, Interval, Phase, Report, VariantSummary, WarmUp
from tfaudit.report import document


def built(given: Evidence, *checks: str) -> Report:
    return document.build(given, choose(checks).values())


def row(given: Evidence, variant: str = "baseline") -> VariantSummary:
    return next(summary for summary in built(given, "1.8").variants if summary.id == variant)


def test_it_says_what_was_audited() -> None:
    given = evidence(baseline=100.0, program=program(model_class="Sequential"), usd_per_hour=1.5)
    report = built(given)
    assert (report.schema_version, report.usd_per_hour, report.complete) == ("1", 1.5, True)
    assert (report.target.kind, report.target.path, report.target.commit) == ("script", "train.py", None)
    assert (report.environment, report.program) == (given.machine, given.program)
    assert report.created_at.endswith("+00:00")


def test_a_factory_is_part_of_the_targets_name() -> None:
    given = evidence(baseline=100.0)
    target = replace(given.plan.target, name="jobs.py", factory="make", arguments=("--lr", "1"))
    report = built(replace(given, plan=replace(given.plan, target=target)))
    assert (report.target.path, report.target.arguments) == ("jobs.py:make", ("--lr", "1"))


def test_every_check_is_in_it_from_the_start() -> None:
    """So that nobody takes silence for a pass."""
    report = built(evidence(baseline=100.0))
    assert len(report.checks) == 54


def test_only_the_checks_asked_for_are_in_it() -> None:
    assert [result.number for result in built(evidence(baseline=100.0), "5.2", "1.8").checks] == [
        "1.8",
        "5.2",
    ]


def test_statuses_are_counted_including_those_that_do_not_occur() -> None:
    report = built(evidence(baseline=100.0, cached_input=140.0), "1.8", "1.3", "1.4")
    assert report.counts == {
        "pass": 1,
        "warn": 0,
        "fail": 1,
        "not-applicable": 0,
        "unknown": 1,
        "manual": 0,
        "error": 0,
    }


def test_a_run_that_was_stopped_is_not_complete() -> None:
    assert not built(evidence(failed("xla", "interrupted"), baseline=100.0)).complete


def test_an_answer_is_no_measured_ceiling() -> None:
    given = evidence(baseline=100.0, cached_input=100.0)
    (ceiling,) = built(given, "1.8").checks
    assert document.headline(given, [ceiling]).startswith("Not input-bound")
    assert document.headline(given, [replace(ceiling, by_answer=True)]) == (
        "Training runs at 100 samples per second."
    )


# Variants -------------------------------------------------------------------------------------------


def test_a_variants_row() -> None:
    given = evidence(
        measured(
            "baseline",
            [90.0, 100.0, 110.0],
            phases=(Phase(name="load", duration_s=1.0),),
            warm_ups=(WarmUp(first_step_ns=3_000_000_000, step_ns=()),),
            notes=("A note.",),
        ),
        usd_per_hour=3.6,
    )
    summary = row(given)
    assert (summary.title, summary.status, summary.purpose) == ("As you have it", "measured", "time")
    rate, per_usd, step = summary.samples_per_s, summary.samples_per_usd, summary.step_ms
    assert rate is not None and per_usd is not None and step is not None
    # 3000 samples in 11.11 + 10 + 9.09 s are 99.3 a second.
    assert (rate.median, rate.low, rate.high) == pytest.approx((99.33, 76.81, 129.59), rel=1e-4)
    assert per_usd.median == pytest.approx(rate.median * 1000)
    assert step.median == pytest.approx(1000.0)
    assert summary.compile_s == pytest.approx(2.0)
    assert (summary.batch_size, summary.steps) == (100.0, 30)
    assert (summary.resolved, summary.loss, summary.notes) == (RESOLVED, 0.5, ("A note.",))
    assert summary.block_samples_per_s == pytest.approx((90.0, 100.0, 110.0))
    assert summary.phases == (Phase(name="load", duration_s=1.0),)


def test_a_variant_that_was_not_timed_has_no_figures() -> None:
    summary = row(evidence(measured("placement", [])), "placement")
    assert (summary.status, summary.purpose, summary.failure) == ("measured", "log", None)
    assert (summary.samples_per_s, summary.step_ms, summary.compile_s, summary.batch_size) == (
        None,
        None,
        None,
        None,
    )


def test_a_variant_that_failed_keeps_its_failure_and_its_blocks() -> None:
    summary = row(evidence(failed("xla", "killed", "measure", 100.0, 100.0)), "xla")
    assert summary.failure is not None and summary.failure.kind == "killed"
    assert summary.block_samples_per_s == (100.0, 100.0)


def test_a_first_step_that_was_no_slower_compiled_nothing() -> None:
    given = evidence(measured("baseline", warm_ups=(WarmUp(first_step_ns=5, step_ns=()),)))
    assert row(given).compile_s == 0.0


def test_a_step_is_one_step_whatever_steps_per_execution_is() -> None:
    """Twenty steps in two calls of 100 ms: 10 ms a step."""
    calls = Block(steps=20, samples=200, duration_ns=200_000_000, step_ns=(100_000_000,) * 2)
    given = evidence(
        measured("baseline", blocks=(calls,) * 5, resolved=replace(RESOLVED, steps_per_execution=10))
    )
    assert row(given).step_ms == Interval(median=10.0, low=10.0, high=10.0)


def test_the_batch_size_is_the_mean_batch() -> None:
    """Smaller batches in one of five blocks count for what they are."""
    blocks = (*(block(32.0, samples=320),) * 4, block(28.0, samples=280))
    assert row(evidence(measured("baseline", blocks=blocks))).batch_size == 31.2


# Comparisons ----------------------------------------------------------------------------------------


def test_every_timed_variant_is_compared_with_the_baseline_and_some_with_each_other() -> None:
    given = evidence(
        measured("placement", []), baseline=100.0, cached_input=140.0, input_only=400.0, xla=97.0
    )
    assert [
        (item.variant, item.reference, round(item.ratio.median, 2), item.verdict)
        for item in built(given).comparisons
    ] == [
        ("cached-input", "baseline", 1.4, "faster"),
        ("input-only", "baseline", 4.0, "faster"),
        ("xla", "baseline", 0.97, "no difference"),
        ("input-only", "cached-input", 2.86, "faster"),
    ]


def test_xla_is_compared_with_no_xla() -> None:
    (*_, last) = built(evidence(baseline=100.0, xla=80.0, no_xla=100.0)).comparisons
    assert (last.variant, last.reference, last.verdict) == ("xla", "no-xla", "slower")


def test_without_a_baseline_nothing_is_compared_with_it() -> None:
    assert built(evidence(failed("baseline", "killed"), xla=100.0)).comparisons == ()


def test_a_variant_that_failed_at_once_is_not_compared() -> None:
    """One block has an interval of no width: a verdict from it is as good as none."""
    given = evidence(failed("xla", "killed", "measure", 140.0), baseline=100.0)
    assert built(given).comparisons == ()


# The headline ---------------------------------------------------------------------------------------

HEADLINES = {
    "input-bound": (
        evidence(baseline=100.0, cached_input=200.0),
        "Input-bound: training reaches 50 % of what the model could do on cached input.",
    ),
    "partly": (
        evidence(baseline=100.0, cached_input=110.0),
        "Partly input-bound: training reaches 91 % of what the model could do on cached input.",
    ),
    "not": (evidence(baseline=100.0, cached_input=102.0), "Not input-bound: cached input gives 1.02×."),
    "no ceiling": (evidence(baseline=12_345.0), "Training runs at 12,345 samples per second."),
    "nothing measured": (
        evidence(failed("baseline", "raised", "load")),
        "Nothing was measured. baseline ended: raised.",
    ),
    "nothing run": (evidence(), "Nothing was measured."),
    "a change": (
        evidence(baseline=100.0, cached_input=100.0, bfloat16=130.0),
        "Not input-bound: cached input gives 1.00×. Best measured change: bfloat16 trains 1.30× as fast.",
    ),
    "the better of two changes": (
        evidence(baseline=100.0, bfloat16=130.0, xla=150.0, no_xla=100.0),
        "Training runs at 100 samples per second. Best measured change: With XLA on it trains 1.50× as fast.",
    ),
    "a change that is none": (
        evidence(baseline=100.0, bfloat16=90.0),
        "Training runs at 100 samples per second.",
    ),
    "what cached input bounds is no measured change": (
        evidence(baseline=100.0, cached_input=200.0, program=SERIAL),
        "Input-bound: training reaches 50 % of what the model could do on cached input.",
    ),
}


@pytest.mark.parametrize("case", HEADLINES)
def test_the_headline(case: str) -> None:
    given, sentence = HEADLINES[case]
    assert built(given).headline == sentence


def test_the_headline_says_nothing_of_input_when_its_check_is_unknown() -> None:
    """Cached input failed after two blocks at twice the rate: 1.8 is unknown, and so is the bound."""
    given = evidence(failed("cached-input", "killed", "measure", 200.0, 200.0), baseline=100.0)
    assert "ot input-bound" not in built(given).headline


@pytest.mark.parametrize(
    ("launches", "alone", "sentence"),
    [
        (1, False, "Each was launched once, so how launches differ is not in the intervals."),
        (2, False, "Each was launched 2 times, and an interval holds what each launch gave."),
        (
            2,
            True,
            "On their own afterwards, not by turns, were measured: xla. They failed beside the others,"
            " or memory did not hold them. The machine's drift is in their ratios.",
        ),
    ],
)
def test_how_the_numbers_came_about_is_noted(launches: int, alone: bool, sentence: str) -> None:
    given = evidence(measured("baseline", launches=launches), measured("xla", alone=alone))
    assert any(sentence in note for note in document.build(given, []).notes) is True
    assert ("not by turns" in " ".join(document.build(given, []).notes)) is alone

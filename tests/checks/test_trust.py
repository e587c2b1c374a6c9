"""Section 8: one line on each side of each rule."""

from __future__ import annotations

import pytest
from checks.builders import CPU, GPU, RESOLVED, callback, evidence, failed, judged, learned, measured, program
from msgspec.structs import replace

from tfaudit.records import Status, Tuned

LEARNED = learned("baseline", {8: 1.0}, {8: 1.1})

CASES = {
    "8.1 constant": ("8.1", evidence(baseline=100.0), Status.PASS),
    "8.1 ±24 %": ("8.1", evidence(baseline=[76.0, 124.0] * 3), Status.PASS),
    "8.1 ±45 %": ("8.1", evidence(baseline=[40.0, 160.0] * 3), Status.WARN),
    "8.1 nothing was timed": ("8.1", evidence(measured("baseline", [])), Status.UNKNOWN),
    "8.1 no baseline": ("8.1", evidence(failed("baseline", "raised", "load")), Status.UNKNOWN),
    "8.2 all ran": ("8.2", evidence(measured("profiled", []), baseline=100.0, xla=100.0), Status.PASS),
    "8.2 one raised": ("8.2", evidence(failed("xla", "raised"), baseline=100.0), Status.WARN),
    "8.2 one was killed": ("8.2", evidence(failed("xla", "killed"), baseline=100.0), Status.WARN),
    "8.2 one was interrupted": ("8.2", evidence(failed("xla", "interrupted"), baseline=100.0), Status.WARN),
    "8.2 one was not run": ("8.2", evidence(failed("xla", "not-run"), baseline=100.0), Status.WARN),
    "8.2 one took no effect": ("8.2", evidence(failed("xla", "not-applied"), baseline=100.0), Status.PASS),
    "8.2 one is not supported": (
        "8.2",
        evidence(failed("cached-input", "unsupported"), baseline=100.0),
        Status.PASS,
    ),
    "8.2 a larger batch did not fit": (
        "8.2",
        evidence(failed("batch-x4", "memory"), baseline=100.0),
        Status.PASS,
    ),
    "8.2 another did not fit": ("8.2", evidence(failed("xla", "memory"), baseline=100.0), Status.WARN),
    "8.2 a larger batch raised": ("8.2", evidence(failed("batch-x4", "raised"), baseline=100.0), Status.WARN),
    "8.2 nothing was run": ("8.2", evidence(), Status.UNKNOWN),
    "8.4 all in force": ("8.4", evidence(baseline=100.0, xla=100.0), Status.PASS),
    "8.4 one took no effect": ("8.4", evidence(failed("xla", "not-applied"), baseline=100.0), Status.PASS),
    "8.4 no baseline": ("8.4", evidence(failed("baseline", "raised", "load")), Status.UNKNOWN),
    "8.5 traced": ("8.5", evidence(baseline=100.0), Status.PASS),
    "8.5 not a traced function": ("8.5", evidence(measured("baseline", traces=None)), Status.UNKNOWN),
    "8.5 no baseline": ("8.5", evidence(failed("baseline", "raised", "load")), Status.UNKNOWN),
    "8.6 the loss follows": (
        "8.6",
        evidence(LEARNED, learned("xla", {8: 1.2}, {8: 1.1})),
        Status.PASS,
    ),
    "8.6 the loss goes astray": (
        "8.6",
        evidence(LEARNED, learned("xla", {8: 1.45}, {8: 1.4})),
        Status.WARN,
    ),
    "8.6 the loss is no number": (
        "8.6",
        evidence(LEARNED, learned("float16", {8: None}, {8: 1.0})),
        Status.WARN,
    ),
    "8.6 the job's own loss is no number": (
        "8.6",
        evidence(learned("baseline", {8: None}, {8: None}), learned("xla", {8: None}, {8: None})),
        Status.WARN,
    ),
    "8.6 the job's own loss is no number with one seed": (
        "8.6",
        evidence(learned("baseline", {8: None}, {8: 1.0}), learned("xla", {8: 1.0}, {8: 1.0})),
        Status.UNKNOWN,
    ),
    "8.6 one launch": (
        "8.6",
        evidence(learned("baseline", {8: 1.0}), learned("xla", {8: 1.0})),
        Status.UNKNOWN,
    ),
    "8.6 no loss": ("8.6", evidence(baseline=100.0, xla=100.0), Status.UNKNOWN),
    "8.6 no baseline": ("8.6", evidence(failed("baseline", "raised", "load")), Status.UNKNOWN),
    "8.7 nothing left out": ("8.7", evidence(program=program(callbacks=(callback("History"),))), Status.PASS),
    "8.7 something left out": (
        "8.7",
        evidence(program=program(callbacks=(callback("ModelCheckpoint", kept=False),))),
        Status.PASS,
    ),
    "8.7 the job is not known": ("8.7", evidence(failed("baseline", "raised", "load")), Status.UNKNOWN),
    "8.8 a GPU": ("8.8", evidence(baseline=100.0, devices=(CPU, GPU)), Status.PASS),
    "8.8 no accelerator": ("8.8", evidence(baseline=100.0), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", CASES)
def test_status(case: str) -> None:
    number, given, status = CASES[case]
    assert judged(number, given).status == status


def test_the_noise_is_stated() -> None:
    result = judged("8.1", evidence(measured("baseline", [90.0, 110.0] * 4, launches=2)))
    assert result.summary == "The baseline is known to ±11 %, from 8 rounds in 2 launches."


@pytest.mark.parametrize(
    ("rate", "jit_compile", "status"),
    [(106.0, False, Status.WARN), (104.0, False, Status.PASS), (130.0, True, Status.PASS)],
)
def test_the_same_program_run_once_more_is_a_control(rate: float, jit_compile: bool, status: Status) -> None:
    """no-xla changes nothing where XLA is off; where it is on, it is a comparison like any other."""
    compiled = replace(RESOLVED, jit_compile=jit_compile)
    result = judged("8.1", evidence(measured("baseline", resolved=compiled), no_xla=rate))
    assert result.status == status


def test_how_far_launches_lie_apart_is_stated() -> None:
    result = judged("8.1", evidence(measured("baseline", [100.0] * 4 + [125.0] * 4, launches=2)))
    assert {fact.name: fact.value for fact in result.facts}["fastest launch over slowest"] == pytest.approx(
        1.25
    )


def test_what_was_not_measured_beside_the_others_is_named() -> None:
    result = judged("8.1", evidence(measured("xla", alone=True), baseline=100.0))
    assert ("not beside the others", "xla") in [(fact.name, fact.value) for fact in result.facts]


def test_variants_without_a_result_are_counted_and_their_reasons_listed() -> None:
    result = judged("8.2", evidence(failed("xla", "killed"), baseline=100.0, no_xla=100.0))
    assert result.summary == "1 of 3 variants did not end well."
    assert [(fact.name, fact.value) for fact in result.facts] == [("failed: xla", "xla ended: killed.")]


def test_a_variant_that_failed_after_enough_blocks_is_not_said_to_have_given_nothing() -> None:
    """From five blocks on it counts for every other check."""
    result = judged("8.2", evidence(failed("xla", "killed", "measure", *[100.0] * 5), baseline=100.0))
    assert result.status == Status.WARN
    assert "gave no result" not in result.summary


def test_variants_without_an_effect_are_named() -> None:
    result = judged("8.4", evidence(failed("xla", "not-applied"), baseline=100.0))
    assert result.summary == "Told apart from the others, since they took no effect: xla."
    assert ("no effect: xla", "xla ended: not-applied.") in [(fact.name, fact.value) for fact in result.facts]


def test_what_autotune_chose_is_listed() -> None:
    tuned = (Tuned("ParallelMapV2", "parallelism", 2.0), Tuned("Prefetch", "buffer_size", 4.0))
    result = judged("8.4", evidence(measured("baseline", tuned=tuned)))
    facts = {fact.name: fact.value for fact in result.facts}
    assert facts["autotune chose: parallelism of ParallelMapV2"] == 2.0
    assert facts["autotune chose: buffer_size of Prefetch"] == 4.0


def test_traces_are_listed_by_variant() -> None:
    result = judged("8.5", evidence(measured("xla", traces=4), measured("baseline", traces=2)))
    assert result.summary == "4 traces in one variant: some may be among the timed steps."
    assert [(fact.name, fact.value) for fact in result.facts] == [("traces: baseline", 2), ("traces: xla", 4)]


def test_callbacks_left_out_are_named() -> None:
    given = evidence(
        program=program(callbacks=(callback("ModelCheckpoint", kept=False), callback("History")))
    )
    assert judged("8.7", given).summary == "Left out: ModelCheckpoint."


def test_the_accelerator_is_named() -> None:
    assert judged("8.8", evidence(devices=(CPU, GPU))).summary == "The job ran on Some GPU."

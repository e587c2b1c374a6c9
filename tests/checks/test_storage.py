"""Section 3: one line on each side of each threshold."""

from __future__ import annotations

import pytest
from checks.builders import evidence, failed, judged, measured, program

from tfaudit.evidence import Evidence
from tfaudit.records import Channel, Status

CASES = {
    "clearly faster": (evidence(input_only=200.0, cached_input=100.0), Status.PASS),
    "26 % faster": (evidence(input_only=126.0, cached_input=100.0), Status.PASS),
    "24 % faster": (evidence(input_only=124.0, cached_input=100.0), Status.WARN),
    "1 % faster": (evidence(input_only=101.0, cached_input=100.0), Status.WARN),
    "1 % slower": (evidence(input_only=99.0, cached_input=100.0), Status.FAIL),
    "the lower end must pass": (evidence(input_only=[120.0, 140.0] * 3, cached_input=100.0), Status.WARN),
    "the upper end must fail": (evidence(input_only=[80.0, 110.0] * 3, cached_input=100.0), Status.WARN),
    "no cached input": (evidence(input_only=200.0), Status.UNKNOWN),
    "no input alone": (evidence(cached_input=200.0), Status.UNKNOWN),
    "input alone failed": (evidence(failed("input-only", "raised"), cached_input=100.0), Status.UNKNOWN),
    "nothing was timed": (evidence(measured("input-only", []), cached_input=100.0), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", CASES)
def test_input_headroom(case: str) -> None:
    """3.3: input alone ÷ cached input."""
    given, status = CASES[case]
    assert judged("3.3", given).status == status


HELD = {
    "26 % faster": (evidence(baseline=100.0, source_cached=126.0), Status.FAIL),
    "24 % faster": (evidence(baseline=100.0, source_cached=124.0), Status.WARN),
    "6 % faster": (evidence(baseline=100.0, source_cached=106.0), Status.WARN),
    "4 % faster": (evidence(baseline=100.0, source_cached=104.0), Status.PASS),
    "slower": (evidence(baseline=100.0, source_cached=90.0), Status.PASS),
    "the lower end decides": (evidence(baseline=100.0, source_cached=[110.0, 150.0] * 3), Status.WARN),
    "nothing is read": (
        evidence(failed("source-cached", "unsupported"), baseline=100.0),
        Status.NOT_APPLICABLE,
    ),
    "it failed": (evidence(failed("source-cached", "raised"), baseline=100.0), Status.UNKNOWN),
    "it was not run": (evidence(baseline=100.0), Status.UNKNOWN),
    "no baseline": (evidence(source_cached=100.0), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", HELD)
def test_storage_cost(case: str) -> None:
    """3.4: source cached ÷ baseline."""
    given, status = HELD[case]
    assert judged("3.4", given).status == status


def test_what_is_held_and_what_that_bounds_is_noted() -> None:
    held = measured("source-cached", 130.0, notes=("32 of 1,280 elements are held in memory.",))
    result = judged("3.4", evidence(held, baseline=100.0))
    assert ("note", "32 of 1,280 elements are held in memory.") in [(f.name, f.value) for f in result.facts]
    assert result.gain is not None and result.gain_is_bound


def test_the_ratio_is_stated() -> None:
    result = judged("3.3", evidence(input_only=200.0, cached_input=100.0))
    assert result.summary == "The pipeline alone delivers 2.00× what the model can take."


# 3.2 ------------------------------------------------------------------------------------------------


def on_sagemaker(*channels: Channel) -> Evidence:
    return evidence(program=program(channels=channels))


GB = 10**9

INPUT_MODES = {
    "elsewhere": (evidence(program=program()), Status.NOT_APPLICABLE),
    "no channel": (on_sagemaker(), Status.MANUAL),
    "FastFile": (on_sagemaker(Channel("train", "FastFile")), Status.PASS),
    "Pipe": (on_sagemaker(Channel("train", "Pipe")), Status.PASS),
    "a file system": (on_sagemaker(Channel("train", "file system")), Status.PASS),
    "File, 49 GB": (on_sagemaker(Channel("train", "File", 49 * GB)), Status.PASS),
    "File, 50 GB": (on_sagemaker(Channel("train", "File", 50 * GB)), Status.WARN),
    "File, 50 GB in two": (
        on_sagemaker(Channel("train", "File", 30 * GB), Channel("test", "File", 20 * GB)),
        Status.WARN,
    ),
    "File, not counted": (on_sagemaker(Channel("train", "File")), Status.WARN),
    "File besides FastFile": (
        on_sagemaker(Channel("train", "FastFile"), Channel("test", "File", 60 * GB)),
        Status.WARN,
    ),
    "not told": (on_sagemaker(Channel("train")), Status.UNKNOWN),
    "the job is not known": (evidence(failed("baseline", "raised", "load")), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", INPUT_MODES)
def test_sagemaker_input_mode(case: str) -> None:
    """3.2"""
    given, status = INPUT_MODES[case]
    assert judged("3.2", given).status == status


def test_the_channels_that_are_copied_are_named() -> None:
    result = judged("3.2", on_sagemaker(Channel("train", "File", 64 * 2**30), Channel("test", "Pipe")))
    assert result.summary == "File mode copies train before training starts: 64.0 GiB."
    assert result.fix == '"train": TrainingInput("s3://…", input_mode="FastFile")'
    assert [(fact.name, fact.value) for fact in result.facts] == [
        ("channel: train", "File, 64.0 GiB"),
        ("channel: test", "Pipe"),
    ]

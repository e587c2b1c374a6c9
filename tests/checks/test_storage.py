"""Section 3: one line on each side of each threshold."""

from __future__ import annotations

import pytest
from checks.builders import evidence, failed, judged, measured

from tfaudit.records import Status

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


def test_the_ratio_is_stated() -> None:
    result = judged("3.3", evidence(input_only=200.0, cached_input=100.0))
    assert result.summary == "The pipeline alone delivers 2.00× what the model can take."

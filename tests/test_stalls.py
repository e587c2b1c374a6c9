"""What each part of a step costs, from variants that leave one out each."""

from __future__ import annotations

import pytest
from checks.builders import CPU, GPU, evidence, failed, measured, program

from tfaudit.records import Stage
from tfaudit.stalls import stalls

#: Milliseconds per sample: 2, 3, 6 and 10.
WHOLE = {"constant_batch": 500.0, "cached_input": 1000 / 3, "source_cached": 1000 / 6, "baseline": 100.0}


def shares(**rates: float) -> dict[str, float]:
    """On a machine with an accelerator."""
    return {part: share.median for part, share in stalls(evidence(devices=(CPU, GPU), **rates)).items()}


def test_the_parts_make_up_a_step() -> None:
    parts = shares(**WHOLE)
    assert parts == pytest.approx({"computing": 0.2, "copying": 0.1, "preprocessing": 0.3, "fetching": 0.4})
    assert sum(parts.values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("missing", "parts"),
    [
        ("constant_batch", {"computing and copying": 0.3, "preprocessing": 0.3, "fetching": 0.4}),
        ("cached_input", {"computing": 0.2, "copying and preprocessing": 0.4, "fetching": 0.4}),
        ("source_cached", {"computing": 0.2, "copying": 0.1, "preprocessing and fetching": 0.7}),
        ("baseline", {}),
    ],
)
def test_parts_that_nothing_tells_apart_are_one(missing: str, parts: dict[str, float]) -> None:
    assert shares(**{name: rate for name, rate in WHOLE.items() if name != missing}) == pytest.approx(parts)


def test_without_an_accelerator_nothing_is_copied_to_one() -> None:
    parts = {part: share.median for part, share in stalls(evidence(**WHOLE)).items()}
    assert parts == pytest.approx({"computing": 0.3, "preprocessing": 0.3, "fetching": 0.4})


def test_a_python_generator_is_not_told_apart_from_storage() -> None:
    by_python = program(pipeline=(Stage(op="from_generator"), Stage(op="batch")))
    parts = stalls(evidence(program=by_python, **WHOLE))
    assert list(parts) == ["computing", "preprocessing and fetching"]


def test_the_baseline_alone_tells_no_parts() -> None:
    assert shares(baseline=100.0) == {}


def test_a_variant_that_failed_or_was_measured_alone_tells_no_part() -> None:
    given = evidence(
        failed("constant-batch", "raised"), measured("cached-input", 200.0, alone=True), baseline=100.0
    )
    assert stalls(given) == {}


def test_a_share_has_the_interval_of_its_rounds() -> None:
    """The baseline takes 10 ms in every other round and 20 ms in the others; the model always 10 ms."""
    given = evidence(baseline=[100.0, 50.0] * 4, cached_input=100.0)
    share = stalls(given)["preprocessing and fetching"]
    assert share.low < share.median < share.high
    assert share.median == pytest.approx(1 / 3)


def test_what_leaves_nothing_out_is_noise_around_nothing() -> None:
    share = stalls(evidence(baseline=[99.0, 101.0] * 4, cached_input=[101.0, 99.0] * 4))
    assert share["preprocessing and fetching"].low < 0 < share["preprocessing and fetching"].high

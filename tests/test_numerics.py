"""The loss of a variant beside the baseline's, step for step and seed for seed."""

from __future__ import annotations

import pytest
from checks.builders import learned

from tfaudit.numerics import compare, diverged_at, follows
from tfaudit.records import Numerics, WarmUp
from tfaudit.records import VariantResult as Result

BASELINE = learned("baseline", {8: 1.0, 16: 0.8}, {8: 1.1, 16: 0.9})


def test_losses_are_compared_at_the_latest_step_that_all_launches_noted() -> None:
    found = compare(learned("xla", {8: 1.0, 16: 0.83, 32: 0.5}, {8: 1.1, 16: 0.86}), BASELINE)
    assert found is not None
    assert (found.step, found.loss, found.reference_loss, found.is_finite) == (16, 0.83, 0.8, True)
    assert found.distance == pytest.approx((0.5 * (0.03**2 + 0.04**2)) ** 0.5)
    assert found.spread == pytest.approx(0.1)


def test_the_loss_of_the_warm_up_and_of_the_blocks_is_one_series() -> None:
    """Eight steps were warm-up in one and timed in the other."""
    warm = Result(
        id="xla", status="measured", warm_ups=(WarmUp(first_step_ns=1, step_ns=(), losses={8: 1.5}),)
    )
    found = compare(warm, BASELINE)
    assert found is not None and (found.step, found.loss) == (8, 1.5)


def test_without_a_common_step_there_is_nothing_to_compare() -> None:
    assert compare(learned("xla", {4: 1.0}), BASELINE) is None
    assert compare(learned("xla"), BASELINE) is None


def test_one_launch_shows_no_spread() -> None:
    found = compare(learned("xla", {8: 1.0}), learned("baseline", {8: 1.0}))
    assert found == Numerics(8, 1.0, 1.0, is_finite=True, distance=0.0, spread=None)
    assert follows(found) is None


def test_two_seeds_that_agree_by_chance_do_not_make_every_distance_a_large_one() -> None:
    found = compare(learned("xla", {8: 1.01}, {8: 1.01}), learned("baseline", {8: 1.0}, {8: 1.0}))
    assert found is not None and found.spread == pytest.approx(0.05)
    assert follows(found) is True


@pytest.mark.parametrize(
    ("own", "reference", "is_finite"),
    [
        ((None, 1.0), (1.0, 1.0), False),
        ((1.0, None), (1.0, 1.0), False),
        ((None, None), (None, 1.0), None),  # the job's own loss is no number, so that is not the variant's
        ((1.0, 1.0), (1.0, 1.0), True),
    ],
)
def test_a_loss_that_is_no_number(
    own: tuple[float | None, ...], reference: tuple[float | None, ...], is_finite: bool | None
) -> None:
    found = compare(
        learned("float16", *({8: loss} for loss in own)),
        learned("baseline", *({8: loss} for loss in reference)),
    )
    assert found is not None and found.is_finite is is_finite


@pytest.mark.parametrize(("distance", "close"), [(0.0, True), (0.3, True), (0.31, False)])
def test_a_distance_of_more_than_three_spreads_is_one(distance: float, close: bool) -> None:
    assert follows(Numerics(8, 1.0, 1.0, is_finite=True, distance=distance, spread=0.1)) is close


def test_a_loss_that_is_lost_after_the_last_common_step_is_lost() -> None:
    late = learned("float16", {8: 1.0}, {8: 1.0}, last=None)
    found = compare(late, learned("baseline", {8: 1.0}, {8: 1.0}))
    assert found is not None and found.is_finite is False


def test_a_loss_that_both_have_brought_to_nothing_is_as_good_as_the_same() -> None:
    """From 2.0 before training to 0 in one and 0.0001 in the other."""
    found = compare(
        learned("xla", {1: 2.0, 8: 1e-4}, {1: 2.0, 8: 1e-4}), learned("baseline", *[{1: 2.0, 8: 0.0}] * 2)
    )
    assert found is not None and found.spread == pytest.approx(0.1)
    assert follows(found) is True


@pytest.mark.parametrize(
    ("launches", "step"),
    [
        (({1: 1.0, 2: None, 4: None}, {1: None, 2: None}), 2),
        (({1: 1.0, 2: None}, {1: 1.0, 2: 1.0}), None),
        (({1: None, 2: 1.0},), None),  # it came back
        (({},), None),  # no loss at all
    ],
)
def test_a_job_whose_loss_is_no_number(
    launches: tuple[dict[int, float | None], ...], step: int | None
) -> None:
    assert diverged_at(learned("baseline", *launches)) == step

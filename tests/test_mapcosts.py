"""What the maps cost, from literal rounds."""

from __future__ import annotations

import pytest
from checks.builders import evidence, program

from tfaudit.evidence import Evidence
from tfaudit.mapcosts import bounded, in_words, map_costs, together, why_not_weighed
from tfaudit.records import Interval, Stage, VariantResult, Weighed, WeighedMap

DECODE, RESIZE = Stage(op="map", function="decode"), Stage(op="map", function="resize")
PIPELINE = (Stage(op="TFRecordDataset"), DECODE, RESIZE, Stage(op="batch"))

ROUNDS = 5


def weighed(*maps: WeighedMap, rounds: int = ROUNDS) -> Evidence:
    """A pipeline that takes 10 ms per batch."""
    found = Weighed(whole_s=(0.01,) * rounds, maps=maps)
    result = VariantResult(id="weighed", status="measured", weighed=found)
    return evidence(result, program=program(*PIPELINE))


def of(stage: int, fed: float, given: float, *compiled: float, rounds: int = ROUNDS) -> WeighedMap:
    return WeighedMap(stage, (fed,) * rounds, (given,) * rounds, compiled * rounds)


def test_a_map_takes_the_difference_between_its_input_and_its_output() -> None:
    costs = map_costs(weighed(of(1, 0.009, 0.005), of(2, 0.005, 0.004, 0.0045)))
    assert list(costs.by_place()) == [1, 2]
    decode, resize = costs.of(DECODE), costs.of(RESIZE)
    assert decode is not None and resize is not None
    assert decode.share.median == pytest.approx(0.4)
    assert decode.until.median == pytest.approx(0.5)
    assert decode.batch_ms.median == pytest.approx(4.0)
    assert decode.saved is None
    assert resize.saved is not None and resize.saved.median == pytest.approx(0.05)


def test_stages_that_are_alike_are_told_apart() -> None:
    """Two branches with the same map, one of which is given more."""
    first, second = Stage(op="map", function="decode"), Stage(op="map", function="decode")
    found = Weighed(whole_s=(0.01,) * 3, maps=(of(0, 0.01, 0.001, rounds=3), of(1, 0.01, 0.009, rounds=3)))
    result = VariantResult(id="weighed", status="measured", weighed=found)
    costs = map_costs(evidence(result, program=program(first, second)))
    shares = [cost.share.median for stage in (first, second) if (cost := costs.of(stage))]
    assert shares == pytest.approx([0.9, 0.1])


def test_a_share_that_is_too_uncertain_is_none() -> None:
    maps = WeighedMap(1, (0.009, 0.002, 0.009, 0.009, 0.002), (0.001,) * 5)
    found = weighed(maps)
    assert map_costs(found).by_place() == {}
    assert why_not_weighed(found).startswith("What it takes is too uncertain")


def test_a_round_is_compared_within_itself() -> None:
    """A machine at half speed in one round changes no share."""
    whole, fed, given = (0.01, 0.02, 0.01), (0.009, 0.018, 0.009), (0.005, 0.01, 0.005)
    found = Weighed(whole_s=whole, maps=(WeighedMap(1, fed, given),))
    result = VariantResult(id="weighed", status="measured", weighed=found)
    cost = map_costs(evidence(result, program=program(*PIPELINE))).of(DECODE)
    assert cost is not None
    share = cost.share
    assert (share.low, share.high) == (pytest.approx(0.4), pytest.approx(0.4))


def test_what_was_not_weighed_has_no_cost() -> None:
    assert map_costs(evidence(program=program(*PIPELINE))).by_place() == {}
    assert map_costs(weighed(of(1, 0.009, 0.005, rounds=2), rounds=2)).by_place() == {}
    assert map_costs(weighed(of(3, 0.009, 0.005), of(7, 0.009, 0.005))).by_place() == {}


@pytest.mark.parametrize(("given", "light"), [(0.00451, True), (0.0045, False)])
def test_a_map_is_light_below_a_twentieth_of_the_work(given: float, light: bool) -> None:
    cost = map_costs(weighed(of(1, 0.005, given))).of(DECODE)
    assert cost is not None and cost.is_light == light


def test_a_cost_in_words() -> None:
    cost = map_costs(weighed(of(1, 0.009, 0.00558))).of(DECODE)
    assert cost is not None
    assert in_words(cost) == "34 % of the pipeline's work (34–34 %), 3.42 ms per batch"


@pytest.mark.parametrize(
    ("share", "cores", "most"),
    [
        (0.0, 2, 1.0),
        (-0.1, 2, 1.0),  # noise
        (0.2, 2, 1.25),
        (0.75, 1, 4.0),
        (0.5, 8, 8.0),  # one thread at half of the work, while seven others wait for it
        (0.95, 8, 9.0),  # what sparing all of it gives
        (1.0, 2, 9.0),
        (None, 2, 9.0),
    ],
)
def test_what_is_spared_bounds_what_is_gained(share: float | None, cores: int, most: float) -> None:
    spared = None if share is None else Interval(share, share, share)
    gain = bounded(Interval(9.0, 9.0, 9.0), spared, cores)
    assert (gain.low, gain.median, gain.high) == pytest.approx((most,) * 3)


def test_a_bound_is_as_wide_as_what_it_rests_on() -> None:
    shares = together([Interval(0.1, 0.05, 0.15), Interval(0.1, 0.05, 0.15)])
    gain = bounded(Interval(2.0, 1.5, 2.5), shares, 1)
    assert (gain.low, gain.median, gain.high) == pytest.approx((1 / 0.9, 1 / 0.8, 1 / 0.7))
    assert together([Interval(0.1, 0.1, 0.1), None]) is None

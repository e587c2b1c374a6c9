"""What the maps cost, from literal rounds."""

from __future__ import annotations

import pytest
from checks.builders import evidence, program

from tfaudit.evidence import Evidence
from tfaudit.mapcosts import bounded, in_words, map_costs, together
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
    assert list(costs) == [DECODE, RESIZE]
    assert costs[DECODE].share.median == pytest.approx(0.4)
    assert costs[DECODE].until.median == pytest.approx(0.5)
    assert costs[DECODE].batch_ms.median == pytest.approx(4.0)
    assert costs[DECODE].saved is None
    saved = costs[RESIZE].saved
    assert saved is not None and saved.median == pytest.approx(0.05)


def test_a_round_is_compared_within_itself() -> None:
    """A machine at half speed in one round changes no share."""
    whole, fed, given = (0.01, 0.02, 0.01), (0.009, 0.018, 0.009), (0.005, 0.01, 0.005)
    found = Weighed(whole_s=whole, maps=(WeighedMap(1, fed, given),))
    result = VariantResult(id="weighed", status="measured", weighed=found)
    share = map_costs(evidence(result, program=program(*PIPELINE)))[DECODE].share
    assert (share.low, share.high) == (pytest.approx(0.4), pytest.approx(0.4))


def test_what_was_not_weighed_has_no_cost() -> None:
    assert map_costs(evidence(program=program(*PIPELINE))) == {}
    assert map_costs(weighed(of(1, 0.009, 0.005, rounds=2), rounds=2)) == {}
    assert map_costs(weighed(of(3, 0.009, 0.005), of(7, 0.009, 0.005))) == {}


@pytest.mark.parametrize(("given", "light"), [(0.00451, True), (0.0045, False)])
def test_a_map_is_light_below_a_twentieth_of_the_work(given: float, light: bool) -> None:
    assert map_costs(weighed(of(1, 0.005, given)))[DECODE].is_light == light


def test_a_cost_in_words() -> None:
    cost = map_costs(weighed(of(1, 0.009, 0.00558)))[DECODE]
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

"""How numbers are written."""

from __future__ import annotations

import math

import pytest

from tfaudit.records import Interval
from tfaudit.report import numbers

from .sample import interval


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "—"), (math.nan, "—"), (math.inf, "—"), (0.0, "0"), (0, "0"), (1234, "1,234"),
        (1234.0, "1,230"), (9.999, "10.0"), (0.9996, "1.00"), (1.3249, "1.32"), (99.96, "100"),
        (0.000123, "0.000123"), (1.5e-9, "1.50e-9"), (-3.14159, "−3.14"),
        (4_621_000.0, "4,620,000"),
    ],
)  # fmt: skip
def test_three_significant_digits_but_whole_numbers_whole(value: float | None, written: str) -> None:
    assert numbers.number(value) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "—"), (0.0, "0 s"), (2.5e-6, "2.50 µs"), (0.0123, "12.3 ms"), (1.0, "1.00 s"),
        (90.0, "90.0 s"), (150.0, "2.50 min"), (7200.0, "2.00 h"),
    ],
)  # fmt: skip
def test_durations_have_the_unit_that_suits_them(value: float | None, written: str) -> None:
    assert numbers.seconds(value) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [(None, "—"), (0, "0 B"), (512, "512 B"), (1536, "1.50 KiB"), (5 * 2**20, "5.00 MiB"),
     (16 * 2**30, "16.0 GiB"), (3 * 2**40, "3.00 TiB")],
)  # fmt: skip
def test_sizes_are_binary(value: int | None, written: str) -> None:
    assert numbers.size(value) == written


def test_an_interval_has_the_decimal_places_of_its_median() -> None:
    assert str(numbers.ratio(Interval(median=1.3249, low=0.998, high=1.36))) == "1.32× (1.00–1.36)"
    assert str(numbers.rate(Interval(median=412.3, low=404.9, high=1420.0))) == "412 (405–1,420)"


def test_an_interval_of_milliseconds_is_in_one_unit() -> None:
    assert str(numbers.milliseconds(Interval(median=1500, low=900, high=1600))) == "1.50 s (0.90–1.60)"


def test_a_share_is_the_inverse_with_its_ends_exchanged() -> None:
    assert str(numbers.share(Interval(median=4.0, low=2.0, high=5.0))) == "25.0 % (20.0–50.0)"
    assert str(numbers.share(interval(0.0))) == "—"


def test_what_is_missing_is_a_dash_without_unit() -> None:
    nothing = Interval(median=math.nan, low=math.nan, high=math.nan)
    for write in (numbers.rate, numbers.ratio, numbers.milliseconds):
        assert str(write(None)) == "—"
        assert str(write(nothing)) == "—"


@pytest.mark.parametrize(
    ("value", "unit", "written"),
    [
        (True, "", "yes"), (None, "bytes", "—"), (0.684, "fraction", "68.4 %"),
        (2048, "bytes", "2.00 KiB"),
        (3.2291, "×", "3.23×"), (12.5, "ms", "12.5 ms"), (412.3, "samples/s", "412 samples/s"),
        ("mixed_float16", "", "mixed_float16"), (7, "", "7"), (math.nan, "s", "—"),
    ],
)  # fmt: skip
def test_facts_are_written_by_their_unit(value: object, unit: str, written: str) -> None:
    assert numbers.fact(value, unit) == written  # type: ignore[arg-type]


def test_axis_figures_have_no_digits_to_spare() -> None:
    assert [numbers.tick(value) for value in (0.0, 0.6, 1250.0)] == ["0", "0.6", "1,250"]

"""How numbers are written in every format: three significant digits, separators, units."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ..records import Interval

MISSING = "—"


class Unit(NamedTuple):
    """A unit to show a quantity in: values of at least ``least`` are divided by ``size``."""

    name: str
    size: float
    least: float


# "90 s" reads better than "1.5 min", so minutes and hours start at two.
_TIME = (
    Unit("h", 3600.0, 7200.0),
    Unit("min", 60.0, 120.0),
    Unit("s", 1.0, 1.0),
    Unit("ms", 1e-3, 1e-3),
    Unit("µs", 1e-6, 0.0),
)
_BYTES = (
    Unit("TiB", 2.0**40, 2.0**40),
    Unit("GiB", 2.0**30, 2.0**30),
    Unit("MiB", 2.0**20, 2.0**20),
    Unit("KiB", 2.0**10, 0.0),
)


def _suited(value: float, units: tuple[Unit, ...]) -> Unit:
    return next((unit for unit in units if abs(value) >= unit.least), units[-1])


def _decimals(value: float) -> int:
    """The decimal places (negative: left of the point) that leave three significant digits."""
    rounded = float(f"{value:.2e}")
    return 0 if rounded == 0 else 2 - math.floor(math.log10(abs(rounded)))


def _fixed(value: float, decimals: int) -> str:
    if decimals > 6:
        return f"{value:.2e}".replace("e-0", "e-")
    return f"{round(value, decimals):,.{max(decimals, 0)}f}".replace("-", "−")


def number(value: float | int | None) -> str:
    """``1,234`` for the integer, ``1,230`` for the measured 1234.0, a dash for None."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return MISSING
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    return _fixed(value, _decimals(value))


def count(value: float | None) -> str:
    """A number of things: exact where it is whole."""
    if value is not None and math.isfinite(value) and value == int(value):
        return number(int(value))
    return number(value)


def tick(value: float) -> str:
    """A round number on an axis, with as few digits as it has."""
    return f"{value:,.6g}".replace("-", "−")


def _spread(interval: Interval, scale: float = 1.0) -> tuple[str, str]:
    """The median, and the interval to the same decimal place."""
    median, low, high = (v / scale for v in (interval.median, interval.low, interval.high))
    if not all(map(math.isfinite, (median, low, high))):
        return number(median), ""
    decimals = _decimals(median)
    return _fixed(median, decimals), f"{_fixed(low, decimals)}–{_fixed(high, decimals)}"


class Written(NamedTuple):
    """A measured number in two parts that can be set apart: ``1.32×`` and ``1.28–1.36``."""

    median: str
    spread: str

    def __str__(self) -> str:
        return f"{self.median} ({self.spread})" if self.spread else self.median


def _written(interval: Interval | None, unit: str = "", scale: float = 1.0) -> Written:
    if interval is None:
        return Written(MISSING, "")
    median, spread = _spread(interval, scale)
    return Written(median if median == MISSING else median + unit, spread)


def rate(interval: Interval | None) -> Written:
    """``412`` and ``405–420``; what is counted stands in the heading."""
    return _written(interval)


def ratio(interval: Interval | None) -> Written:
    """``1.32×`` and ``1.28–1.36``."""
    return _written(interval, "×")


def milliseconds(interval: Interval | None) -> Written:
    """A duration given in milliseconds, in the unit that suits its median."""
    if interval is None or not math.isfinite(interval.median):
        return _written(None)
    unit = _suited(interval.median / 1e3, _TIME)
    return _written(interval, f" {unit.name}", unit.size * 1e3)


def share(interval: Interval | None) -> Written:
    """The inverse of a ratio as a percentage: what part of the faster rate is reached."""
    if interval is None or min(interval.low, interval.median) <= 0:
        return _written(None)
    inverse = Interval(median=1 / interval.median, low=1 / interval.high, high=1 / interval.low)
    return _written(inverse, " %", 0.01)


def seconds(value: float | None) -> str:
    """A duration in µs, ms, s, min or h."""
    if value is None or not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0 s"
    unit = _suited(value, _TIME)
    return f"{_fixed(value / unit.size, _decimals(value / unit.size))} {unit.name}"


def size(value: float | None) -> str:
    """A number of bytes in B, KiB, MiB, GiB or TiB."""
    if value is None or not math.isfinite(value):
        return MISSING
    if abs(value) < 1024:
        return f"{count(value)} B"
    unit = _suited(value, _BYTES)
    return f"{_fixed(value / unit.size, _decimals(value / unit.size))} {unit.name}"


_BY_UNIT: dict[str, Callable[[float], str]] = {
    "s": seconds,
    "ms": lambda value: seconds(value / 1e3),
    "ns": lambda value: seconds(value / 1e9),
    "bytes": size,
    "fraction": lambda value: f"{number(value * 100.0)} %",
    "$": lambda value: f"${value:,.4g}",
    "×": lambda value: f"{number(value)}×",
    "x": lambda value: f"{number(value)}×",
    "ratio": lambda value: f"{number(value)}×",
}


def fact(value: float | int | str | bool | None, unit: str = "", interval: Interval | None = None) -> str:
    """The value of one row of evidence with its unit, and its interval behind it."""
    if interval is not None:
        ends = (fact(end, unit) for end in (interval.low, interval.high))
        return f"{fact(interval.median, unit)} ({' – '.join(ends)})"
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return f"{value} {unit}".rstrip()
    if not math.isfinite(value):
        return MISSING
    written = _BY_UNIT.get(unit)
    return written(value) if written else f"{number(value)} {unit}".rstrip()

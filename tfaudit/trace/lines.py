"""Choose the lines of a plane that are worth decoding, and find where their events lie."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from .wire import BYTES, VARINT, Buffer, Field, Ints, fields, ranges

# Event lines of a device; every other line (TensorFlow Ops, XLA Modules, ...) is derived from them.
STREAM = re.compile(r"^\s*stream\b", re.IGNORECASE)
XLA_OPS = "XLA Ops"
STEPS = "Steps"
# The threads of tf.data: ops that run there belong to the input pipeline.
INPUT_THREAD = re.compile(r"^tf_data")

# Field numbers of XLine.
NAME, TIME, EVENTS, DISPLAY_NAME = 2, 3, 4, 11

# Lines further apart than this belong to no single profile: their clocks are damaged.
SPREAD_NS = 10 * 24 * 3600 * 10**9


class Line(NamedTuple):
    """A line's name, the time that its events count from, and the bounds of each event."""

    name: str
    time_ns: int
    starts: Ints
    stops: Ints


def choose(names: Iterable[str]) -> set[str]:
    """Of the names of a device's lines, return those that hold its events: streams, else XLA ops."""
    names = set(names)
    streams = {name for name in names if STREAM.match(name)}
    return streams or names & {XLA_OPS}


def read_lines(buffer: Buffer, parts: Ints, host: bool, everything: bool) -> list[Line]:
    """Find the events of the lines that matter, given each line's bounds.

    On devices, `STEPS` is among them.
    """
    bounds = parts.tolist()
    if not (host or everything):
        titles = [_title(buffer, _head(buffer, *each))[0] for each in bounds]
        chosen = choose(titles) | {STEPS}
        bounds = [each for each, title in zip(bounds, titles, strict=True) if title in chosen]
    return [_line(buffer, *each) for each in bounds]


def _head(buffer: Buffer, start: int, stop: int) -> list[Field]:
    """Return the fields before the first event, among them the name."""
    head = []
    for item in fields(buffer.data, start, stop):
        if item.number == EVENTS:
            break
        head.append(item)
    return head


def _line(buffer: Buffer, start: int, stop: int) -> Line:
    starts, stops, others = ranges(buffer.data, start, stop, EVENTS)
    return Line(*_title(buffer, others), starts, stops)


def _title(buffer: Buffer, items: list[Field]) -> tuple[str, int]:
    name, shown, time_ns = "", "", 0
    for item in items:
        if item.number == NAME and item.wire == BYTES:
            name = buffer.text(item.start, item.stop)
        elif item.number == DISPLAY_NAME and item.wire == BYTES:
            shown = buffer.text(item.start, item.stop)
        elif item.number == TIME and item.wire == VARINT:
            time_ns = item.value - (1 << 64) if item.value >> 63 else item.value
    return name or shown, time_ns


def origin(times_ns: Iterable[int]) -> int | None:
    """Return the earliest of the times that lie together; None where there are none."""
    times = sorted(times_ns)
    if not times:
        return None
    middle = times[len(times) // 2]
    return min(time for time in times if abs(time - middle) <= SPREAD_NS)

"""Read the dictionaries of a plane: what the ids in its events and statistics stand for."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from .wire import BYTES, FIXED64, VARINT, Buffer, Field, Ints, fields, walk

# Field numbers of a map entry, of XEventMetadata and XStatMetadata, and of XStat.
KEY, VALUE = 1, 2
NAME, DISPLAY_NAME, STATS = 2, 4, 5
STAT_NAME, DOUBLE, UINT64, INT64, STRING, REFERENCE = 1, 2, 3, 4, 5, 7

Value: TypeAlias = "int | float | str"


class Entry(NamedTuple):
    """What one id stands for; ``stats`` are the bounds of the statistics that it carries."""

    name: str
    label: str
    stats: tuple[tuple[int, int], ...]


def read_entries(buffer: Buffer, entries: Ints) -> dict[int, Entry]:
    """Read a map from ids to named metadata, given each entry's bounds; of equal ids the last counts."""
    keys = np.zeros(len(entries), np.int64)
    bounds = np.zeros((2, len(entries)), np.int64)
    for column in walk(buffer, entries[:, 0], entries[:, 1]):
        if column.number == KEY and column.wire == VARINT:
            keys[column.rows] = column.values.view(np.int64)
        elif column.number == VALUE and column.wire == BYTES:
            bounds[0, column.rows], bounds[1, column.rows] = column.starts, column.stops
    name, label, stats = _values(buffer, bounds[0], bounds[1])
    return {
        key: Entry(name[row], label[row], tuple(stats.get(row, ()))) for row, key in enumerate(keys.tolist())
    }


def _values(
    buffer: Buffer, starts: Ints, stops: Ints
) -> tuple[list[str], list[str], dict[int, list[tuple[int, int]]]]:
    names, labels = [""] * starts.size, [""] * starts.size
    stats: dict[int, list[tuple[int, int]]] = {}
    for column in walk(buffer, starts, stops):
        if column.wire != BYTES or column.number not in (NAME, DISPLAY_NAME, STATS):
            continue
        rows = column.rows.tolist()
        for row, start, stop in zip(rows, column.starts.tolist(), column.stops.tolist(), strict=True):
            if column.number == STATS:
                stats.setdefault(row, []).append((start, stop))
            else:
                texts = names if column.number == NAME else labels
                texts[row] = buffer.text(start, stop)
    return names, labels, stats


def read_stats(
    buffer: Buffer, bounds: Iterable[Sequence[int]], stat_names: dict[int, Entry]
) -> dict[str, Value]:
    """Read a few statistics, one by one, by name."""
    found: dict[str, Value] = {}
    for start, stop in bounds:
        key, value = "", None
        for item in fields(buffer.data, start, stop):
            if item.number == STAT_NAME and item.wire == VARINT:
                key = stat_names[item.value].name if item.value in stat_names else ""
            else:
                value = _value(buffer, item, stat_names)
        if key and value is not None:
            found[key] = value
    return found


def _value(buffer: Buffer, item: Field, stat_names: dict[int, Entry]) -> Value | None:
    if item.number == DOUBLE and item.wire == FIXED64:
        return float(struct.unpack_from("<d", buffer.data, item.start)[0])
    if item.number in (UINT64, INT64) and item.wire == VARINT:
        signed = item.number == INT64 and item.value >= 1 << 63
        return item.value - (1 << 64) if signed else item.value
    if item.number == STRING and item.wire == BYTES:
        return buffer.text(item.start, item.stop)
    if item.number == REFERENCE and item.wire == VARINT:
        return stat_names[item.value].name if item.value in stat_names else ""
    return None

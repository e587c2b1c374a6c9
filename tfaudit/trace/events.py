"""Decode the events of a plane: every line's XEvents in lockstep, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .tables import Interned
from .wire import BYTES, CHUNK, FIXED64, VARINT, Buffer, Ints, Words, varints, walk

# Field numbers of XEvent and XStat.
EVENT_NAME, OFFSET, DURATION, STATS, OCCURRENCES = 1, 2, 3, 4, 5
STAT_NAME, DOUBLE, UINT64, INT64, STRING, REFERENCE = 1, 2, 3, 4, 5, 7

# No profile is longer: offsets and durations beyond three days are damage, not time.
LONGEST_PS = 2**58

# Statistics that are read, by their name in the file; several may fill one column, the first wins.
DEVICE_STATS: Mapping[str, tuple[str, int]] = {
    "correlation_id": ("correlation", 0),
    "memcpy_details": ("details", 0),
    "tf_op": ("op", 0),
    "hlo_op": ("op", 1),
    "annotation": ("op", 2),
    "cuda_graph_id": ("graphed", 0),
    "cuda_graph_exec_id": ("graphed", 1),
    "cuda_graph_node_id": ("graphed", 2),
}
MARKER_STATS: Mapping[str, tuple[str, int]] = {
    "step_num": ("step", 0),
    "group_id": ("group", 0),
    "_r": ("rooted", 0),
    "step_name": ("label", 0),
}
HOST_STATS: Mapping[str, tuple[str, int]] = {
    "correlation_id": ("correlation", 0),
    "memcpy_details": ("details", 0),
    **MARKER_STATS,
}
TEXT_COLUMNS = frozenset({"details", "op", "label"})

# What JAX writes as the op of everything inside a compiled program.
NO_OP = frozenset({"", "XlaModule:"})


class Lookup:
    """Maps the sparse ids of a file to dense codes, vectorised. Unknown ids map to ``missing``."""

    def __init__(self, codes: Mapping[int, int], missing: int) -> None:
        self._missing = missing
        self._ids = np.array(sorted(codes), dtype=np.int64)
        self._codes = np.array([codes[i] for i in self._ids.tolist()], dtype=np.int32)
        self._direct: npt.NDArray[np.int32] | None = None
        if self._ids.size and self._ids[0] >= 0 and self._ids[-1] < 4 * self._ids.size + 1024:
            self._direct = np.full(int(self._ids[-1]) + 1, missing, dtype=np.int32)
            self._direct[self._ids] = self._codes

    def __call__(self, ids: Ints) -> npt.NDArray[np.int32]:
        if not self._ids.size:
            return np.full(ids.shape, self._missing, dtype=np.int32)
        if self._direct is not None:
            known = (ids >= 0) & (ids < self._direct.size)
            if known.all():
                direct: npt.NDArray[np.int32] = self._direct[ids]
                return direct
            return np.where(known, self._direct[np.where(known, ids, 0)], self._missing).astype("i4")
        at = np.minimum(np.searchsorted(self._ids, ids), self._ids.size - 1)
        return np.where(self._ids[at] == ids, self._codes[at], self._missing).astype("i4")


@dataclass(frozen=True)
class Dictionary:
    """What the numbers in a plane's events stand for.

    ``names`` maps event metadata ids to names; ``ignored`` says which of these need no look;
    ``stats`` maps stat metadata ids to a code in ``slots``; ``references`` are the texts behind
    ref_value; ``texts`` collects the texts met.
    """

    names: Lookup
    ignored: npt.NDArray[np.bool_]
    stats: Lookup
    slots: list[tuple[str, int]]
    references: dict[int, str]
    texts: Interned


@dataclass
class _Stats:
    """The wanted statistics of one chunk, one array per round of the walk."""

    rows: list[Ints]
    slots: list[npt.NDArray[np.int32]]
    kinds: list[npt.NDArray[np.int8]]
    values: list[Words]
    stops: list[Ints]


def decode(
    buffer: Buffer, starts: Ints, stops: Ints, lines: npt.NDArray[np.int32], book: Dictionary
) -> Iterator[tuple[dict[str, npt.NDArray[np.generic]], int]]:
    """Yield the columns of the events of each chunk, and how many were damaged and left out.

    ``start_ps`` is still the offset within the line. Rows of ignored names are left out.
    """
    for first in range(0, starts.size, CHUNK):
        chunk = slice(first, first + CHUNK)
        yield _decode_chunk(buffer, starts[chunk], stops[chunk], lines[chunk], book)


def _decode_chunk(
    buffer: Buffer, starts: Ints, stops: Ints, lines: npt.NDArray[np.int32], book: Dictionary
) -> tuple[dict[str, npt.NDArray[np.generic]], int]:
    if book.ignored.any():
        wanted = ~_ignored(buffer, starts, book)
        if not wanted.all():
            starts, stops, lines = starts[wanted], stops[wanted], lines[wanted]
    count = starts.size
    base = {number: np.zeros(count, np.int64) for number in (EVENT_NAME, OFFSET, DURATION)}
    aggregated = np.zeros(count, bool)
    stats = _Stats([], [], [], [], [])
    for column in walk(buffer, starts, stops):
        if column.number == STATS and column.wire == BYTES:
            _collect(buffer, column.rows, column.starts, column.stops, book, stats)
        elif column.wire == VARINT and column.number in base:
            base[column.number][column.rows] = column.values.view(np.int64)
        elif column.number == OCCURRENCES:
            aggregated[column.rows] = True
    columns: dict[str, npt.NDArray[np.generic]] = {
        "line": lines,
        "name": book.names(base[EVENT_NAME]),
        "start_ps": base[OFFSET],
        "duration_ps": base[DURATION],
    }
    columns.update(_pivot(buffer, stats, count, book))
    sound = (np.abs(base[OFFSET]) <= LONGEST_PS) & (base[DURATION] >= 0)
    sound &= (base[DURATION] <= LONGEST_PS) & (base[OFFSET] > -LONGEST_PS)
    damaged = count - int(np.count_nonzero(sound))
    sound &= ~aggregated  # counters that stand at no point of time
    if not sound.all():
        columns = {name: values[sound] for name, values in columns.items()}
    return columns, damaged


def _ignored(buffer: Buffer, starts: Ints, book: Dictionary) -> npt.NDArray[np.bool_]:
    """Say which events have an ignored name, where the name is the first thing they state."""
    named = buffer.words[starts] & np.uint64(0xFF) == np.uint64(EVENT_NAME << 3)
    ids, _ = varints(buffer, np.where(named, starts + 1, buffer.size))  # size: the padding, a 0
    ignored: npt.NDArray[np.bool_] = named & book.ignored[book.names(ids.view(np.int64))]
    return ignored


def _collect(buffer: Buffer, rows: Ints, starts: Ints, stops: Ints, book: Dictionary, into: _Stats) -> None:
    """Read one statistic of many events; those that nobody asked for are dropped at a glance."""
    if not book.slots:
        return
    named = (buffer.words[starts] & np.uint64(0xFF)) == np.uint64(STAT_NAME << 3)
    ids, _ = varints(buffer, np.where(named, starts + 1, buffer.size))
    wanted = np.flatnonzero((book.stats(ids.view(np.int64)) >= 0) | ~named)
    if not wanted.size:
        return
    slot = np.full(wanted.size, -1, np.int32)
    kind = np.zeros(wanted.size, np.int8)
    value = np.zeros(wanted.size, np.uint64)
    stop = np.zeros(wanted.size, np.int64)
    for column in walk(buffer, starts[wanted], stops[wanted]):
        if column.number == STAT_NAME and column.wire == VARINT:
            slot[column.rows] = book.stats(column.values.view(np.int64))
        elif (column.number, column.wire) in _VALUES:
            kind[column.rows] = column.number
            text = column.number == STRING
            value[column.rows] = column.starts.view(np.uint64) if text else column.values
            stop[column.rows] = column.stops
    keep = np.flatnonzero((slot >= 0) & (kind > 0))
    into.rows.append(rows[wanted[keep]])
    into.slots.append(slot[keep])
    into.kinds.append(kind[keep])
    into.values.append(value[keep])
    into.stops.append(stop[keep])


_VALUES = frozenset(
    {(DOUBLE, FIXED64), (UINT64, VARINT), (INT64, VARINT), (STRING, BYTES), (REFERENCE, VARINT)}
)


def _pivot(buffer: Buffer, stats: _Stats, count: int, book: Dictionary) -> dict[str, npt.NDArray[np.generic]]:
    """Turn statistics into one column per slot, the lowest priority written first."""
    columns: dict[str, npt.NDArray[np.generic]] = {}
    rows = np.concatenate([np.empty(0, np.int64), *stats.rows])
    slots = np.concatenate([np.empty(0, np.int32), *stats.slots])
    kinds = np.concatenate([np.empty(0, np.int8), *stats.kinds])
    values = np.concatenate([np.empty(0, np.uint64), *stats.values])
    stops = np.concatenate([np.empty(0, np.int64), *stats.stops])
    order = sorted(range(len(book.slots)), key=lambda code: -book.slots[code][1])
    for code in order:
        name = book.slots[code][0]
        if name not in columns:
            columns[name] = np.full(count, -1, np.int32 if name in TEXT_COLUMNS else np.int64)
        which = np.flatnonzero(slots == code)
        if not which.size:
            continue
        if name in TEXT_COLUMNS:
            codes = _texts(buffer, kinds[which], values[which], stops[which], book)
            columns[name][rows[which[codes >= 0]]] = codes[codes >= 0]
        else:
            columns[name][rows[which]] = _numbers(buffer, kinds[which], values[which], stops[which])
    if "graphed" in columns:
        columns["graphed"] = columns["graphed"].view(np.int64) > 0
    return columns


def _numbers(buffer: Buffer, kinds: npt.NDArray[np.int8], values: Words, stops: Ints) -> Ints:
    """Read statistics as whole numbers, whichever of the value fields they were written to."""
    numbers: Ints = values.view(np.int64).copy()
    doubles = kinds == DOUBLE
    if doubles.any():
        real = np.nan_to_num(values[doubles].view(np.float64), nan=-1.0, posinf=-1.0, neginf=-1.0)
        numbers[doubles] = np.clip(real, -(2.0**62), 2.0**62).astype(np.int64)
    for at in np.flatnonzero((kinds == STRING) | (kinds == REFERENCE)).tolist():
        text = buffer.text(int(values[at]), int(stops[at]))[:20] if kinds[at] == STRING else ""
        numbers[at] = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1
    return numbers


def _texts(
    buffer: Buffer,
    kinds: npt.NDArray[np.int8],
    values: Words,
    stops: Ints,
    book: Dictionary,
) -> npt.NDArray[np.int32]:
    """Give each text statistic its code in ``book.texts``; -1 where there is no text."""
    codes = np.full(kinds.size, -1, np.int32)
    references = np.flatnonzero(kinds == REFERENCE)
    distinct, back = np.unique(values[references].view(np.int64), return_inverse=True)
    meaning = [_code(book, book.references.get(ref, "")) for ref in distinct.tolist()]
    codes[references] = np.array(meaning, np.int32)[back] if meaning else -1
    strings = np.flatnonzero(kinds == STRING)
    if strings.size:
        bounds = zip(values[strings].tolist(), stops[strings].tolist(), strict=True)
        codes[strings] = [_code(book, buffer.text(start, stop)) for start, stop in bounds]
    return codes


def _code(book: Dictionary, text: str) -> int:
    text = text.partition("#")[0].removesuffix("::") if "#" in text else text
    return -1 if text in NO_OP else book.texts.code(text)

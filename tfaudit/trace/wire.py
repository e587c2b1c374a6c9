"""The protobuf wire format, read without a schema and without one Python step per field.

A submessage's end is only known from its length, so boundaries are found by a plain loop
(`ranges`); what lies inside many submessages is then read in lockstep (`walk`): field number k of all
of them in one go. Every position is checked against the end of its message and the number of rounds
is bounded, so that damaged bytes end in `Malformed` and never in a hang.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.uint64]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

# Zero bytes after the data, so that a 64-bit word can be read at every position.
PADDING = 24
# XEvents of 80 public traces have fewer than 40 fields; beyond this the bytes are no trace.
MAX_FIELDS = 2048
# Large enough to hide the cost of a numpy call, small enough to stay in the processor's cache.
CHUNK = 32768


class Malformed(ValueError):
    """The bytes are not protobuf messages. ``truncated``: they stop in the middle of a message."""

    def __init__(self, reason: str, truncated: bool = False) -> None:
        super().__init__(reason)
        self.truncated = truncated


class Buffer:
    """Bytes followed by `PADDING`, readable as bytes and as a 64-bit word at each offset."""

    def __init__(self, padded: bytearray) -> None:
        self.data = padded
        self.size = len(padded) - PADDING
        self.words: Words = np.ndarray((self.size + PADDING - 7,), dtype="<u8", buffer=padded, strides=(1,))

    @classmethod
    def of(cls, content: bytes) -> Buffer:
        return cls(bytearray(content) + bytearray(PADDING))

    def text(self, start: int, stop: int) -> str:
        return self.data[start:stop].decode("utf-8", "replace")


def varint(data: bytearray, position: int, stop: int) -> tuple[int, int]:
    """Return the unsigned value at ``position`` and the position after it."""
    value = shift = 0
    while position < stop and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
    raise Malformed("a number does not end", truncated=position >= stop)


class Field(NamedTuple):
    """One field of one message: the number itself for varints, otherwise where its bytes lie."""

    number: int
    wire: int
    value: int
    start: int
    stop: int


def fields(data: bytearray, position: int, stop: int) -> Iterator[Field]:
    """Yield the fields of the message in ``data[position:stop]``, one by one."""
    while position < stop:
        tag, position = varint(data, position, stop)
        wire, value = tag & 7, 0
        start = end = position
        if wire == VARINT:
            value, end = varint(data, position, stop)
        elif wire == BYTES:
            value, start = varint(data, position, stop)
            end = start + value
        elif wire == FIXED64:
            end = start + 8
        elif wire == FIXED32:
            end = start + 4
        else:
            raise Malformed(f"unknown wire type {wire}")
        if end > stop:
            raise Malformed("a field reaches beyond its message", truncated=True)
        if tag < 8:
            raise Malformed("field number 0")
        yield Field(tag >> 3, wire, value, start, end)
        position = end


def ranges(data: bytearray, position: int, stop: int, number: int) -> tuple[Ints, Ints, list[Field]]:
    """Split a message into its many submessages ``number`` (below 16) and its few other fields.

    Returns their starts, their stops, and the other fields. Empty submessages are left out.
    """
    tag = number << 3 | BYTES
    starts: list[Ints] = []
    stops: list[Ints] = []
    others: list[Field] = []
    while position < stop:
        begin: list[int] = []
        end: list[int] = []
        for _ in range(CHUNK):  # this loop runs once per event of the trace: nothing is called in it
            if position >= stop:
                break
            if data[position] != tag:
                field = next(fields(data, position, stop))
                others.append(field)
                position = field.stop
                continue
            size = data[position + 1]
            start = position + 2
            if size > 127:
                high = data[start]
                start += 1
                size += (high << 7) - 128
                if high > 127:
                    size, start = varint(data, position + 1, stop)
            position = start + size
            if size:
                begin.append(start)
                end.append(position)
        if position > stop:
            break
        starts.append(np.array(begin, np.int64))
        stops.append(np.array(end, np.int64))
    if position != stop:
        raise Malformed("an entry reaches beyond its message", truncated=True)
    none = np.empty(0, np.int64)
    return np.concatenate([none, *starts]), np.concatenate([none, *stops]), others


# --------------------------------------------------------------------------------------------------
# Many messages at once

_CONTINUES = np.uint64(0x8080_8080_8080_8080)
_CONTINUES_7 = np.uint64(0x0080_8080_8080_8080)
_ONE, _SEVEN, _EIGHT, _BYTE = (np.uint64(n) for n in (1, 7, 8, 0xFF))
# (1 << 8k) times this has k + 1 in its highest byte: the length of a varint without a branch.
_LENGTHS = np.uint64(0x0102_0304_0506_0708)
_FOLDS = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(shift))
    for low, high, shift in (
        (0x007F_007F_007F_007F, 0x7F00_7F00_7F00_7F00, 1),
        (0x0000_3FFF_0000_3FFF, 0x3FFF_0000_3FFF_0000, 2),
        (0x0000_0000_0FFF_FFFF, 0x0FFF_FFFF_0000_0000, 4),
    )
)


def _unpack(word: Words, continues: np.uint64) -> tuple[Words, Words]:
    """Decode the varint at the low end of each word; its length is 0 where it does not end there."""
    ends = ~word & continues
    last = ends & (~ends + _ONE)
    value = word & (last | (last - _ONE))
    for low, high, shift in _FOLDS:
        value = (value & low) | ((value & high) >> shift)
    return value, ((last >> _SEVEN) * _LENGTHS) >> np.uint64(56)


def varints(buffer: Buffer, at: Ints) -> tuple[Words, Ints]:
    """Decode the varint at each position: the values, and the positions after them."""
    word = buffer.words[at]
    value, size = _unpack(word, _CONTINUES)
    length = size.astype(np.int64)
    long = np.flatnonzero(length == 0)
    if long.size:  # negative numbers and the like: nine or ten bytes
        tail = buffer.words[at[long] + 8]
        tenth = (tail >> _EIGHT) & _BYTE
        ninth = tail & _BYTE
        if (tenth[ninth > 127] > 127).any():
            raise Malformed("a number does not end")
        folded = word[long] & ~_CONTINUES
        for low, high, shift in _FOLDS:
            folded = (folded & low) | ((folded & high) >> shift)
        folded |= (ninth & np.uint64(0x7F)) << np.uint64(56)
        folded |= np.where(ninth > 127, tenth & _ONE, np.uint64(0)) << np.uint64(63)
        value[long] = folded
        length[long] = np.where(ninth > 127, 10, 9)
    return value, at + length


class Column(NamedTuple):
    """Field ``number`` of some of the messages walked: ``rows`` says which ones.

    ``values`` holds numbers (raw bits for FIXED64); ``starts`` and ``stops`` bound the payload.
    """

    number: int
    wire: int
    rows: Ints
    values: Words
    starts: Ints
    stops: Ints


def walk(buffer: Buffer, starts: Ints, stops: Ints) -> Iterator[Column]:
    """Yield the fields of many messages in lockstep, as one `Column` per round and kind of field."""
    rows = np.arange(starts.size)
    at = starts
    for _ in range(MAX_FIELDS):
        live = at < stops
        if not live.all():
            rows, at, stops = rows[live], at[live], stops[live]
        if not rows.size:
            return
        word = buffer.words[at]
        tags = (word & _BYTE).astype(np.uint8)
        following = np.empty_like(at)
        present = np.flatnonzero(np.bincount(tags, minlength=256))
        for tag in present.tolist():
            if len(present) == 1:
                which = slice(None)
                column = _column(buffer, tag, rows, at, word)
            else:
                which = np.flatnonzero(tags == tag)  # type: ignore[assignment]
                column = _column(buffer, tag, rows[which], at[which], word[which])
            if (column.stops > stops[which]).any():
                raise Malformed("a field reaches beyond its message")
            following[which] = column.stops
            yield column
        at = following
    raise Malformed("a message with too many fields")


def _column(buffer: Buffer, tag: int, rows: Ints, at: Ints, word: Words) -> Column:
    """Read the field that starts at each position with the same first byte ``tag``."""
    number, wire, begin = tag >> 3, tag & 7, at + 1
    if tag > 127:  # fields from 16 on: unknown to this reader, only to be stepped over
        number, (_, begin) = -1, varints(buffer, at)
        word = np.full_like(word, ~np.uint64(0))
    if wire == FIXED64:
        return Column(number, wire, rows, buffer.words[_inside(buffer, begin)], begin, begin + 8)
    if wire == FIXED32:
        return Column(number, wire, rows, np.zeros_like(word), begin, begin + 4)
    if wire not in (VARINT, BYTES) or number == 0:
        raise Malformed(f"unknown wire type {wire}")
    values, size = _unpack(word >> _EIGHT, _CONTINUES_7)
    after = begin + size.astype(np.int64)
    long = np.flatnonzero(size == 0)
    if long.size:
        values[long], after[long] = varints(buffer, _inside(buffer, begin[long]))
    if wire == VARINT:
        return Column(number, wire, rows, values, begin, after)
    if (values > np.uint64(buffer.size)).any():
        raise Malformed("a length beyond the end of the file")
    return Column(number, wire, rows, values, after, after + values.astype(np.int64))


def _inside(buffer: Buffer, at: Ints) -> Ints:
    if at.size and int(at.max()) > buffer.size + PADDING - 16:
        raise Malformed("a field reaches beyond the end of the file")
    return at

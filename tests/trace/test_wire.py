"""The wire format."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xspaces import message, number, varint

from tfaudit.trace import wire
from tfaudit.trace.wire import Buffer, Malformed, fields, ranges, varints, walk


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20))
def test_varints_of_every_length_are_decoded_together(values: list[int]) -> None:
    encoded = [varint(value) for value in values]
    at = np.cumsum([0, *map(len, encoded)])
    decoded, after = varints(Buffer.of(b"".join(encoded)), at[:-1])
    assert decoded.tolist() == values
    assert after.tolist() == at[1:].tolist()


def test_walk_reads_messages_with_different_fields_in_lockstep() -> None:
    messages = [number(1, 5) + number(2, 1 << 60), number(2, 7), number(1, 300) + message(4, b"abc")]
    at = np.cumsum([0, *map(len, messages)])
    found = {
        (column.number, row): value
        for column in walk(Buffer.of(b"".join(messages)), at[:-1], at[1:])
        for row, value in zip(column.rows.tolist(), column.values.tolist(), strict=True)
    }
    assert found == {(1, 0): 5, (2, 0): 1 << 60, (2, 1): 7, (1, 2): 300, (4, 2): 3}


def test_fields_of_later_versions_are_stepped_over() -> None:
    content = number(500, 9) + number(1, 5)
    buffer = Buffer.of(content)
    columns = list(walk(buffer, np.array([0]), np.array([len(content)])))
    assert [(column.number, column.values.tolist()) for column in columns] == [(-1, [9]), (1, [5])]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"\x0a\x05ab", id="length beyond the end"),
        pytest.param(b"\x08" + b"\xff" * 11, id="number without end"),
        pytest.param(b"\x0b", id="group"),
        pytest.param(b"\x00\x00", id="field 0"),
        pytest.param(b"\x09\x01\x02", id="half a double"),
    ],
)
def test_damage_is_malformed_to_both_readers(content: bytes) -> None:
    buffer = Buffer.of(content)
    with pytest.raises(Malformed):
        list(fields(buffer.data, 0, buffer.size))
    with pytest.raises(Malformed):
        list(walk(buffer, np.array([0]), np.array([buffer.size])))


def test_a_message_with_endless_fields_is_malformed_not_slow() -> None:
    content = b"\x08\x01" * (wire.MAX_FIELDS + 1)
    with pytest.raises(Malformed, match="too many fields"):
        list(walk(Buffer.of(content), np.array([0]), np.array([len(content)])))


@pytest.mark.parametrize("size", [1, 127, 128, 20_000, 3_000_000])
def test_ranges_finds_submessages_of_any_length(size: int) -> None:
    content = number(3, 12) + message(4, b"x" * size) + message(2, b"name") + message(4, b"y")
    starts, stops, others = ranges(bytearray(content) + bytearray(24), 0, len(content), 4)
    assert (stops - starts).tolist() == [size, 1]
    assert [field.number for field in others] == [3, 2]


def test_ranges_says_that_the_last_submessage_is_cut_off() -> None:
    content = message(4, b"abc")[:-1]
    with pytest.raises(Malformed) as error:
        ranges(bytearray(content) + bytearray(24), 0, len(content), 4)
    assert error.value.truncated

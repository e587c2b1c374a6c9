"""Short builders of XSpace files: the wire format written by hand, so that no reader is trusted.

Times are microseconds. A statistic is an int (int64), a float (double), a str (str_value), a `Ref`
(ref_value) or an `Unsigned` (uint64).
"""

from __future__ import annotations

import struct
from pathlib import Path


class Ref(str):
    """A string written once into the plane's stat metadata and referred to."""


class Unsigned(int):
    """A number written as uint64_value."""


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


class PlaneBuilder:
    """One plane. `event` adds to the line of that name, which is made when it is first used."""

    def __init__(self, name: str, **facts: int | str) -> None:
        self.name = name
        self.lines: dict[str, tuple[int, int, list[bytes]]] = {}
        self.names: dict[str, int] = {}
        self.stats: dict[str, int] = {}
        self.meta_stats: dict[str, bytes] = {}
        self.facts = b"".join(message(6, self.stat(key, value)) for key, value in facts.items())

    def line(self, name: str, number: int = 1, timestamp_ns: int = 0) -> PlaneBuilder:
        self.lines[name] = (number, timestamp_ns, [])
        return self

    def stat(self, name: str, value: object) -> bytes:
        key = number(1, self.stats.setdefault(name, len(self.stats) + 1))
        if isinstance(value, Ref):
            return key + number(7, self.stats.setdefault(str(value), len(self.stats) + 1))
        if isinstance(value, Unsigned):
            return key + number(3, value)
        if isinstance(value, float):
            return key + varint(2 << 3 | 1) + struct.pack("<d", value)
        if isinstance(value, int):
            return key + number(4, value)
        return key + message(5, str(value).encode())

    def event(
        self, line: str, name: str, start_us: float, duration_us: float, **stats: object
    ) -> PlaneBuilder:
        if line not in self.lines:
            self.line(line, len(self.lines) + 1)
        body = number(1, self.names.setdefault(name, len(self.names) + 1))
        body += number(2, round(start_us * 1e6)) + number(3, round(duration_us * 1e6))
        body += b"".join(message(4, self.stat(key, value)) for key, value in stats.items())
        self.lines[line][2].append(message(4, body))
        return self

    def describe(self, name: str, **stats: object) -> PlaneBuilder:
        """Put statistics on an event's metadata, as TPU profiles do."""
        self.names.setdefault(name, len(self.names) + 1)
        self.meta_stats[name] = b"".join(message(5, self.stat(k, v)) for k, v in stats.items())
        return self

    def content(self) -> bytes:
        parts = [message(2, self.name.encode())]
        for name, (line, timestamp_ns, events) in self.lines.items():
            head = number(1, line) + message(2, name.encode()) + number(3, timestamp_ns)
            parts.append(message(3, head + b"".join(events)))
        for field, texts in ((4, self.names), (5, self.stats)):
            for text, key in texts.items():
                extra = self.meta_stats.get(text, b"") if field == 4 else b""
                meta = number(1, key) + message(2, text.encode()) + extra
                parts.append(message(field, number(1, key) + message(2, meta)))
        return b"".join(parts) + self.facts


def gpu(index: int = 0, **facts: int | str) -> PlaneBuilder:
    return PlaneBuilder(f"/device:GPU:{index}", **facts)


def host() -> PlaneBuilder:
    return PlaneBuilder("/host:CPU")


def space(*planes: PlaneBuilder, hostname: str = "worker") -> bytes:
    content = b"".join(message(1, plane.content()) for plane in planes)
    return content + message(4, hostname.encode())


def write(folder: Path, *planes: PlaneBuilder, name: str = "worker.xplane.pb") -> Path:
    path = folder / name
    path.write_bytes(space(*planes))
    return path

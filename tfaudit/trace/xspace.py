"""Read an XSpace (``.xplane.pb``) into one `Trace`: its planes with their event tables.

Only what an audit needs is decoded: the streams (GPU) or XLA ops (TPU) and the steps of devices, and
those host events that say why a device idles. Lines that repeat the time of others are skipped.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from .events import DEVICE_STATS, HOST_STATS, MARKER_STATS, Dictionary, Lookup, decode
from .lines import INPUT_THREAD, SPREAD_NS, STEPS, Line, origin, read_lines
from .metadata import Entry, Value, read_entries, read_stats
from .names import Role, role_of, work_of
from .tables import EVENT_COLUMNS, MARKER_COLUMNS, Interned, Plane, Trace, table
from .wire import BYTES, Buffer, Field, Ints, Malformed, fields

Columns: TypeAlias = "dict[str, npt.NDArray[np.generic]]"

DEVICE = re.compile(r"^/device:(GPU|TPU):\d+$")
HOST = re.compile(r"^/host:(?!metadata)")
# The device plane's own statistics, and what they are called here.
FACTS = {
    "core_count": "core_count",
    "memory_size": "memory_bytes",
    "compute_cap_major": "compute_capability_major",
    "compute_cap_minor": "compute_capability_minor",
    "device_vendor": "vendor",
    "device_type_string": "model",
}

# Field numbers of XSpace and XPlane.
PLANES, ERRORS, WARNINGS, HOSTNAMES = 1, 2, 3, 4
PLANE_NAME, LINES, EVENT_NAMES, STAT_NAMES, PLANE_STATS = 2, 3, 4, 5, 6

# A host has a few planes per device; damaged files may seem to have a million.
MOST_PLANES = 2_000


@dataclass
class _Raw:
    """A plane before it is decoded: where its parts lie, by field number."""

    name: str = ""
    parts: dict[int, array[int]] = field(default_factory=dict)  # start, stop, start, stop, ...

    def of(self, number: int) -> Ints:
        """Return the bounds of all parts ``number``, one row each."""
        return np.array(self.parts.get(number, ()), np.int64).reshape(-1, 2)


def read_xspace(buffer: Buffer, path: Path, everything: bool = False) -> Trace:
    """Decode a file. With ``everything``, derived lines and uninteresting host events are kept too.

    Raises `Malformed` when the bytes are damaged or no XSpace.
    """
    raws: list[_Raw] = []
    remarks: list[str] = []
    host = ""
    for part in fields(buffer.data, 0, buffer.size):
        if part.number == PLANES and part.wire == BYTES:
            raws.append(_open(buffer, part))
        elif part.number in (ERRORS, WARNINGS) and part.wire == BYTES:
            remarks.append(buffer.text(part.start, part.stop))
        elif part.number == HOSTNAMES and part.wire == BYTES:
            host = host or buffer.text(part.start, part.stop)
        elif not raws:
            raise Malformed("the first bytes belong to no XSpace")
        if len(raws) + len(remarks) > MOST_PLANES:
            raise Malformed("too many planes")
    planes: list[tuple[Plane, int | None]] = []
    damaged = 0
    for raw in raws:
        kind = kind_of(raw.name)
        if kind:
            plane, base_ns, bad = _Decoder(buffer, raw, kind, everything).plane()
            planes.append((plane, base_ns))
            damaged += bad
    return Trace(path, host, _align(planes), tuple(remarks), damaged)


def kind_of(plane: str) -> str:
    """Return ``gpu``, ``tpu`` or ``host`` for the name of a plane, or nothing for the others."""
    device = DEVICE.match(plane)
    if device:
        return device[1].lower()
    return "host" if HOST.match(plane) else ""


def _open(buffer: Buffer, part: Field) -> _Raw:
    raw = _Raw()
    for item in fields(buffer.data, part.start, part.stop):
        if item.wire != BYTES:
            continue
        if item.number == PLANE_NAME:
            raw.name = buffer.text(item.start, item.stop)
        else:
            raw.parts.setdefault(item.number, array("q")).extend((item.start, item.stop))
    return raw


def _align(planes: list[tuple[Plane, int | None]]) -> tuple[Plane, ...]:
    """Put the planes' times on one clock, whose zero is the earliest line of the file."""
    zero = origin(base_ns for _, base_ns in planes if base_ns is not None)
    for plane, base_ns in planes:
        if zero is not None and base_ns is not None:
            shift = min(max(base_ns - zero, -SPREAD_NS), SPREAD_NS) * 1000
            plane.events["start_ps"] += shift
            plane.markers["start_ps"] += shift
    return tuple(plane for plane, _ in planes)


class _Decoder:
    """Decodes one plane."""

    def __init__(self, buffer: Buffer, raw: _Raw, kind: str, everything: bool) -> None:
        self._buffer, self._raw, self._kind, self._everything = buffer, raw, kind, everything
        self._texts = Interned()
        self._stat_names = read_entries(buffer, raw.of(STAT_NAMES))
        self._entries = read_entries(buffer, raw.of(EVENT_NAMES))
        # The last name is that of events whose name is not in the file.
        self._names = [*(entry.name for entry in self._entries.values()), ""]
        self._kinds = (role_of if kind == "host" else work_of)(self._names)
        self._damaged = 0

    def plane(self) -> tuple[Plane, int | None, int]:
        """Return the plane, the time that it counts from, and how many events were damaged."""
        is_host = self._kind == "host"
        lines = read_lines(self._buffer, self._raw.of(LINES), is_host, self._everything)
        base_ns = origin(line.time_ns for line in lines if line.starts.size)
        lines = [self._near(line, base_ns or 0) for line in lines]
        steps = [line for line in lines if line.name == STEPS and not is_host]
        if steps:
            lines = [line for line in lines if line.name != STEPS]
        events, markers = self._read(lines, HOST_STATS if is_host else DEVICE_STATS)
        if steps:
            _, markers = self._read(steps, MARKER_STATS)
        plane = Plane(
            name=self._raw.name,
            kind=self._kind,
            names=self._names,
            labels=[*(entry.label for entry in self._entries.values()), ""],
            lines=[line.name for line in lines],
            events=events,
            texts=self._texts.texts,
            markers=markers,
            facts=self._facts(),
            descriptions=self._descriptions(),
        )
        return plane, base_ns, self._damaged

    def _near(self, line: Line, base_ns: int) -> Line:
        """Count the line from the plane's zero; drop its events where its clock is damaged."""
        late_ns = line.time_ns - base_ns
        if abs(late_ns) <= SPREAD_NS or not line.starts.size:
            return line._replace(time_ns=late_ns if line.starts.size else 0)
        self._damaged += line.starts.size
        return line._replace(time_ns=0, starts=line.starts[:0], stops=line.stops[:0])

    # -- events

    def _read(
        self, lines: list[Line], wanted: Mapping[str, tuple[str, int]]
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Decode lines into a table of events and a table of step markers."""
        none = np.empty(0, np.int64)
        starts = np.concatenate([none, *(line.starts for line in lines)])
        stops = np.concatenate([none, *(line.stops for line in lines)])
        index = np.repeat(np.arange(len(lines), dtype=np.int32), [li.starts.size for li in lines])
        late_ps = np.array([line.time_ns * 1000 for line in lines], np.int64)
        inputs = np.array([bool(INPUT_THREAD.match(line.name)) for line in lines], bool)
        events: list[Columns] = []
        markers: list[Columns] = []
        for columns, damaged in decode(self._buffer, starts, stops, index, self._book(wanted)):
            self._damaged += damaged
            columns["start_ps"] = columns["start_ps"].view(np.int64) + late_ps[columns["line"]]
            columns["kind"] = self._kinds[columns["name"]]
            markers.append(self._markers(columns, wanted))
            events.append(self._roles(columns, inputs) if self._kind == "host" else columns)
        return _sorted(EVENT_COLUMNS, events), _sorted(MARKER_COLUMNS, markers)

    def _book(self, wanted: Mapping[str, tuple[str, int]]) -> Dictionary:
        found = [(key, wanted[entry.name]) for key, entry in self._stat_names.items() if entry.name in wanted]
        ignored = np.zeros(len(self._names), bool)
        if self._kind == "host" and not self._everything:
            ignored = self._kinds == Role.IGNORED
        return Dictionary(
            names=Lookup({key: code for code, key in enumerate(self._entries)}, len(self._entries)),
            ignored=ignored,
            stats=Lookup({key: code for code, (key, _) in enumerate(found)}, -1),
            slots=[slot for _, slot in found],
            references={key: entry.name for key, entry in self._stat_names.items()},
            texts=self._texts,
        )

    def _roles(self, columns: Columns, inputs: npt.NDArray[np.bool_]) -> Columns:
        """Give host events their final roles and keep those that have one."""
        role = columns["kind"].astype(np.int8)
        working = np.isin(role, (Role.PLAIN, Role.EXECUTE, Role.OP))
        role[working & inputs[columns["line"]]] = Role.PRODUCE
        called = np.zeros(role.size, bool)
        if "correlation" in columns:
            called = columns["correlation"].view(np.int64) >= 0
            role[called & (role != Role.SYNC) & (role != Role.COMPILE)] = Role.LAUNCH
        if "details" in columns:
            blocking = np.array([*(text.find("async:0") >= 0 for text in self._texts.texts), False])
            role[called & blocking[columns["details"]]] = Role.SYNC
        columns["kind"] = role
        if self._everything:
            return columns
        keep = role > Role.PLAIN
        return {name: values[keep] for name, values in columns.items()}

    def _markers(self, columns: Columns, wanted: Mapping[str, tuple[str, int]]) -> Columns:
        """Pick the step markers: host events with a step number, or all of the Steps line."""
        all_of_them = wanted is MARKER_STATS
        if wanted is DEVICE_STATS or not (all_of_them or "step" in columns):
            return {}
        count = columns["name"].size
        absent = np.full(count, -1, np.int64)
        step = columns.get("step", absent).view(np.int64)
        rows = np.arange(count) if all_of_them else np.flatnonzero(step >= 0)
        texts = [*self._texts.texts, ""]
        labels = [
            texts[int(text)] or self._names[int(name)]
            for text, name in zip(columns.get("label", absent)[rows], columns["name"][rows], strict=True)
        ]
        shown = [self._names[int(name)].strip() for name in columns["name"][rows]]
        group = columns.get("group", absent)[rows].view(np.int64)
        numbers = np.array(
            [int(text) if text.isdecimal() and len(text) < 18 else -1 for text in shown], np.int64
        )
        return {
            "start_ps": columns["start_ps"][rows],
            "duration_ps": columns["duration_ps"][rows],
            "step": np.where(numbers < 0, group, numbers) if all_of_them else step[rows],
            "group": group,
            "rooted": columns.get("rooted", absent).view(np.int64)[rows] > 0,
            "label": np.array(labels, dtype=object),
        }

    # -- facts

    def _facts(self) -> dict[str, Value]:
        stats = read_stats(self._buffer, self._raw.of(PLANE_STATS).tolist(), self._stat_names)
        return {FACTS[name]: value for name, value in stats.items() if name in FACTS}

    def _descriptions(self) -> list[str]:
        """Return what XLA says of each op: its HLO category and the framework op behind it."""
        if self._kind == "host":
            return []
        return [*(self._description(entry) for entry in self._entries.values()), ""]

    def _description(self, entry: Entry) -> str:
        stats = read_stats(self._buffer, list(entry.stats), self._stat_names)
        return str(stats.get("tf_op") or stats.get("hlo_category") or "")


def _sorted(columns: Mapping[str, str], chunks: list[Columns]) -> pd.DataFrame:
    """Join chunks into one table sorted by start, one column at a time to spare memory."""
    chunks = [chunk for chunk in chunks if chunk]
    if not chunks:
        return table(columns, {})
    order = np.argsort(np.concatenate([chunk["start_ps"] for chunk in chunks]), kind="stable")
    present = [name for name in columns if all(name in chunk for chunk in chunks)]
    joined = {}
    for name in present:
        joined[name] = np.concatenate([chunk.pop(name) for chunk in chunks])[order]
    return table(columns, joined)

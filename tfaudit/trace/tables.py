"""What a decoded trace looks like, whatever file it came from: planes with one event table each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

# Times are picoseconds since the trace's earliest line. ``name`` and ``line`` index Plane.names and
# Plane.lines; ``op`` and ``details`` index Plane.texts (-1: none).
EVENT_COLUMNS: Mapping[str, str] = {
    "line": "int32",
    "name": "int32",
    "start_ps": "int64",
    "duration_ps": "int64",
    "kind": "int8",  # names.Work on devices, names.Role on the host
    "correlation": "int64",  # pairs a host call with the device events it launched; -1: none
    "op": "int32",  # the framework op behind a kernel
    "details": "int32",  # what the profiler says of a copy: size, memory kinds
    "graphed": "bool",  # launched as a node of a CUDA graph
}
# Host markers and the device's Steps line. ``step`` and ``group`` are -1 where they are not told.
MARKER_COLUMNS: Mapping[str, str] = {
    "start_ps": "int64",
    "duration_ps": "int64",
    "step": "int64",
    "group": "int64",
    "rooted": "bool",  # carries _r=1, without which XProf sees no step
    "label": "object",  # step_name, else the event's own name
}
ABSENT: Mapping[str, int | bool] = {"correlation": -1, "op": -1, "details": -1, "graphed": False}

PS_PER_MS = 1e9
PS_PER_US = 10**6


def table(columns: Mapping[str, str], values: Mapping[str, Any]) -> pd.DataFrame:
    """Build a table of exactly the declared columns; those not given hold their `ABSENT` value."""
    rows = len(next(iter(values.values()))) if values else 0
    data = {
        name: np.asarray(values[name]).astype(kind, copy=False)
        if name in values
        else np.full(rows, ABSENT.get(name, 0), dtype=kind)
        for name, kind in columns.items()
    }
    frame: pd.DataFrame = pd.DataFrame(data, copy=False)
    return frame


def no_events() -> pd.DataFrame:
    return table(EVENT_COLUMNS, {})


def no_markers() -> pd.DataFrame:
    return table(MARKER_COLUMNS, {})


@dataclass(frozen=True)
class Plane:
    """One device or the host, its events sorted by start.

    ``kind`` is ``gpu``, ``tpu`` or ``host``; ``labels`` are short forms of ``names`` where the file
    has them; ``descriptions`` say what XLA calls each name; ``facts`` are the plane's own
    statistics (core count, memory, ...).
    """

    name: str
    kind: str
    names: list[str]
    lines: list[str]
    events: pd.DataFrame
    texts: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    descriptions: list[str] = field(default_factory=list)
    markers: pd.DataFrame = field(default_factory=no_markers)
    facts: dict[str, int | float | str] = field(default_factory=dict)

    def numbers(self, column: str) -> npt.NDArray[np.int64]:
        """Return one column of the events as a plain array."""
        return self.events[column].to_numpy()

    def label(self, name: int) -> str:
        """Return a name as people read it."""
        return (self.labels[name] if self.labels else "") or self.names[name]

    def description(self, name: int) -> str:
        return self.descriptions[name] if self.descriptions else ""


@dataclass(frozen=True)
class Trace:
    """One file: one host and its devices. ``remarks`` are the profiler's own errors and warnings."""

    path: Path
    host: str
    planes: tuple[Plane, ...]
    remarks: tuple[str, ...] = ()
    damaged_events: int = 0

    @property
    def devices(self) -> list[Plane]:
        return [plane for plane in self.planes if plane.kind != "host"]

    @property
    def hosts(self) -> list[Plane]:
        return [plane for plane in self.planes if plane.kind == "host"]


class Interned:
    """Gives equal texts equal numbers."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._codes: dict[str, int] = {}

    def code(self, text: str) -> int:
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self.texts)
            self.texts.append(text)
        return code

    def codes(self, texts: Iterable[str]) -> npt.NDArray[np.int32]:
        return np.array([self.code(text) for text in texts], dtype=np.int32)

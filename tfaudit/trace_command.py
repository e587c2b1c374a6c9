"""What ``tfaudit trace`` tells of a trace; `cli` prints it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from . import trace
from .errors import TraceError, UsageError
from .records import Report, to_json
from .trace.summary import TraceEvidence, TraceSummary, XprofVerdict, plane_number

#: The checks that read a trace.
CHECKS = ("1.9", "1.10", "1.11", "1.12", "5.3", "6.5", "8.3")

#: XProf is asked last, and killed when it takes longer.
XPROF_TIMEOUT_S = 30.0

# What a terminal obeys or what reverses the reading order, allowed in JSON as it is.
_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class Wanted(NamedTuple):
    """The step and the device asked for; None stands for all of them."""

    step: int | None = None
    device: int | None = None


def read(path: Path, wanted: Wanted) -> tuple[TraceSummary, TraceSummary]:
    """The whole summary, and the part of it that was asked for.

    Raises `TraceError` when there is nothing to tell, or no such step or device.
    """
    from .trace.verdicts import nothing_to_tell

    whole = trace.summarise(path)
    if problem := nothing_to_tell(whole):
        raise TraceError(problem)
    return whole, chosen(whole, wanted)


def chosen(summary: TraceSummary, wanted: Wanted) -> TraceSummary:
    """The summary with only the step and the device asked for."""
    devices, steps = summary.devices, summary.steps
    if wanted.device is not None:
        devices = tuple(each for each in devices if plane_number(each.plane) == wanted.device)
        if not devices:
            names = ", ".join(each.plane for each in summary.devices) or "none"
            raise TraceError(f"The trace has no device {wanted.device}: there are {names}.")
    if wanted.step is not None:
        steps = tuple(each for each in steps if each.step == wanted.step)
        if not steps:
            there = ", ".join(str(each.step) for each in summary.steps[:20]) or "none"
            raise TraceError(f"The trace has no step {wanted.step}: there are {there}.")
    return replace(summary, devices=devices, steps=steps)


def as_json(summary: TraceSummary) -> str:
    """The summary as JSON, in which no character moves a terminal's cursor."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match.group()):04x}", to_json(summary).decode())


def as_text(
    path: Path,
    whole: TraceSummary,
    part: TraceSummary,
    ask_xprof: Callable[[], XprofVerdict | None],
    *,
    color: bool,
    width: int,
) -> Iterator[str]:
    """The figures at once, then what waits for XProf; a piece of text each."""
    from .report import trace_text
    from .report.text import Terminal

    terminal = Terminal(color, width)
    yield "\n".join(trace_text.figures(part, terminal))
    verdict = ask_xprof()
    report = judge(path, TraceEvidence(summary=whole, xprof=verdict))
    yield "\n".join(trace_text.verdicts(whole, verdict, report.checks, terminal))


def judge(path: Path, evidence: TraceEvidence) -> Report:
    """The report document of a trace alone: the same checks as after a run."""
    from . import checking
    from .evidence import of_trace
    from .report import document

    return document.build(of_trace(path.name or str(path), evidence), checking.choose(CHECKS).values())


def page(path: Path, whole: TraceSummary, wanted: Wanted, verdict: XprofVerdict | None) -> str:
    """The trace as one HTML file."""
    from .report import html
    from .trace.reading import find_files

    evidence = TraceEvidence(
        bytes=sum(file.stat().st_size for file in find_files(path)),
        summary=whole,
        timeline=trace.timeline(path, wanted.step, wanted.device),
        xprof=verdict,
    )
    return html.render_trace(judge(path, evidence))


def save(path: Path, content: str | bytes) -> None:
    """Write a file. Raises `UsageError` when that cannot be done."""
    try:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from None

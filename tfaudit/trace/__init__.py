"""Read profiler traces: what a device did, why it idled, and what each step went to.

Importing this package is cheap; pandas is imported by the first call.
"""

from __future__ import annotations

from pathlib import Path

from ..errors import TraceError
from .summary import Timeline, TraceEvidence, TraceSummary, XprofVerdict

__all__ = ["examine", "summarise", "timeline", "to_perfetto", "xprof_verdict"]


def summarise(path: Path) -> TraceSummary:
    """Summarise a trace file (``.xplane.pb``, ``.trace.json(.gz)``, TF 1 timeline) or a log folder.

    Of a log folder, the newest session is read with all its hosts.
    Raises `tfaudit.errors.TraceError`, one sentence, when there is nothing to read.
    """
    from . import assemble

    return assemble.summarise(path)


def timeline(path: Path, step: int | None = None, device: int | None = None) -> Timeline:
    """Return what ran when in one step of one device, and why it idled.

    Without ``step`` the step of median length is taken, without ``device`` the busiest.
    Raises `tfaudit.errors.TraceError` like `summarise`, or when there is no such step or device.
    """
    from . import drawing

    return drawing.timeline(path, step, device)


def to_perfetto(path: Path) -> bytes:
    """Return the trace as Chrome JSON, which Perfetto and chrome://tracing open.

    Raises `tfaudit.errors.TraceError` like `summarise`.
    """
    from . import perfetto

    return perfetto.export(path)


def xprof_verdict(path: Path, timeout_s: float) -> XprofVerdict:
    """Return what XProf says of the same trace.

    It runs on a copy, in a process of its own that is killed after ``timeout_s`` seconds; whatever
    goes wrong there is told in ``error`` and raises nothing.
    """
    from . import xprof

    return xprof.verdict(path, timeout_s)


def examine(path: Path, xprof_timeout_s: float) -> TraceEvidence:
    """Return all that a report shows of a trace: summary, timeline of one step, XProf's verdict.

    Raises `tfaudit.errors.TraceError` when there is nothing to tell.
    """
    from .reading import find_files
    from .verdicts import nothing_to_tell

    summary = summarise(path)
    if problem := nothing_to_tell(summary):
        raise TraceError(problem)
    return TraceEvidence(
        bytes=sum(file.stat().st_size for file in find_files(path)),
        summary=summary,
        timeline=timeline(path),
        xprof=xprof_verdict(path, xprof_timeout_s),
    )

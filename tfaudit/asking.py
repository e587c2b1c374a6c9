"""What `tfaudit answer` asks a person about a finished run; `cli` shows it and hears the answers."""

from __future__ import annotations

import getpass
import shlex
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from . import folder as folders
from .checking import find, load
from .errors import UsageError
from .records import Answer, CheckResult, Report, Said, Status, read

if TYPE_CHECKING:
    from .report.text import Terminal

#: What is typed for an answer; besides these, one may skip an item or quit.
KEYS: dict[str, Said] = {"y": "yes", "n": "no", "x": "n-a"}
SKIP, QUIT = "s", "q"


class Place(NamedTuple):
    """A run's report, the file for the answers, and how they are applied."""

    report: Report
    answers: Path
    how_to_apply: str


def place(target: Path, answers: Path | None) -> Place:
    """Where a run folder, or a report on its own, has these.

    Raises `UsageError` when there is no report, or when the file would lie beside what is the user's own.
    """
    report = read(target, Report) if target.is_file() else folders.report(target)
    folder = target.parent if target.is_file() else target
    of_a_run = folders.plan_path(folder).exists()
    if answers is None and not of_a_run:
        raise UsageError(f"{target} lies in no run folder: say where the answers go with --answers FILE.")
    answers = answers or folders.answers_path(folder)
    audited = shlex.quote(str(folder)) if of_a_run else "FOLDER"
    return Place(report, answers, f"tfaudit audit {audited} --answers {shlex.quote(str(answers))}")


def items(
    report: Report, *, names: Collection[str], also_unknown: bool, answered: Collection[str]
) -> list[CheckResult]:
    """The checks to ask about: those named, or else all that are manual and not ``answered`` yet.

    Raises `UsageError` for a name that is no check, or none of the report's.
    """
    judged = {item.id for item in report.checks}
    wanted = {find(name).id for name in names}
    if absent := wanted - judged:
        raise UsageError(f"The report has no check {min(absent)}: judge it with `tfaudit audit` first.")
    if names:
        return [item for item in report.checks if item.id in wanted]
    statuses = (Status.MANUAL, Status.UNKNOWN) if also_unknown else (Status.MANUAL,)
    skipped = {*answered, *(item.id for item in report.checks if item.id not in load())}
    return [item for item in report.checks if item.status in statuses and item.id not in skipped]


def given(report: Report) -> list[Answer]:
    """The answers that the report holds, for a file that is new: applying it replaces them all."""
    return [item.answer for item in report.checks if item.answer and item.answer.check in load()]


def lines(item: CheckResult, count: str, terminal: Terminal) -> Iterator[str]:
    """One item: what was found, why it matters, what is asked."""
    from .report.text import INDENT

    yield ""
    yield from terminal.wrapped(count)
    yield from terminal.check(item, "")
    yield from terminal.said(item)
    yield from terminal.wrapped(f"Why it matters: {item.why}", INDENT, limit=2_000) if item.why else ()
    question = find(item.id).question
    if question not in item.summary:  # a check may have nothing to say but its question
        yield from terminal.wrapped(question, INDENT, bold=True)


def nothing(report: Report, also_unknown: bool) -> str:
    """Why there is nothing to ask, and what could be."""
    unknown = sum(item.status is Status.UNKNOWN for item in report.checks)
    further = f" --all asks about unknown ones, too: {unknown}." if unknown and not also_unknown else ""
    return f"No check waits for a person's answer.{further}"


def login() -> str:
    """The login name; empty where there is none, as in some containers."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return ""

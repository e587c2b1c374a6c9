"""The report as Markdown for a pull-request comment: at most one screen."""

from __future__ import annotations

import re

from ..records import Report
from . import numbers, plain, reading, templates

MOST_FINDINGS = 10
MOST_UNMEASURED = 6
MOST_ANSWERS = 6

_MARKUP = re.compile(r"[\\`*_\[\]|~$]")
_CODE = re.compile("`([^`]+)`")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# An invisible space keeps a forge from notifying whoever a program's text seems to mention, and
# from linking issues that it seems to name.
_MENTION = re.compile(r"([@#])(?=\w)")
_UNSEEN = "\u200b"
_PIPE = r"\|"  # in a table it ends the cell even inside code


def render(report: Report) -> str:
    """The whole comment."""
    environment = templates.environment(autoescape=False, write=escape)
    environment.filters.update(one_line=plain.one_line)
    found = reading.findings(report)
    absent = reading.unmeasured(report)
    answered = reading.answered(report)
    text = environment.get_template("report.md").render(
        report=report,
        reading=reading,
        numbers=numbers,
        MISSING=numbers.MISSING,
        findings=found[:MOST_FINDINGS],
        more_findings=len(found) - MOST_FINDINGS,
        unmeasured=absent[:MOST_UNMEASURED],
        more_unmeasured=len(absent) - MOST_UNMEASURED,
        answered=answered[:MOST_ANSWERS],
        more_answered=len(answered) - MOST_ANSWERS,
    )
    return text.rstrip("\n") + "\n"


def escape(text: str) -> str:
    """Text that Markdown shows as it is, on one line; what stands in backticks becomes code."""
    parts = _CODE.split(plain.one_line(text, 600))
    return "".join(
        f"`{part.replace('|', _PIPE)}`" if place % 2 else _escape(part) for place, part in enumerate(parts)
    )


def _escape(text: str) -> str:
    text = _MARKUP.sub(r"\\\g<0>", text)
    text = re.sub("[&<>]", lambda match: _HTML[match.group()], text)
    return _MENTION.sub(rf"\1{_UNSEEN}", text)

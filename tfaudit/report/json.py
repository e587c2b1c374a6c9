"""``report.json`` itself: the document that all other formats are views of."""

from __future__ import annotations

from ..records import Report, to_json


def render(report: Report) -> str:
    """The report as indented JSON."""
    return to_json(report).decode()

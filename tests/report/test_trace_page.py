"""The trace in the report and on a page of its own: charts, tables, and what is missing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tfaudit.report import FORMATS, html, trace_charts
from tfaudit.trace.summary import Timeline, TraceEvidence

from .page import Page
from .sample import report, trace


def test_the_report_shows_timeline_split_gaps_copies_ops_and_xprof() -> None:
    text = Page(FORMATS["html"](report())).text
    for words in (
        "Timeline of one step",
        "Where a step's time goes",
        "Longest gaps",
        "Longest copies",
        "Top device ops",
        "XProf beside tfaudit",
        "“others”",
    ):
        assert words in text, words


def test_a_page_of_a_trace_alone_holds_the_same_section() -> None:
    page = Page(html.render_trace(report(variants=(), comparisons=(), program=None)))
    assert "Timeline of one step" in page.text
    assert len(page.ids) == len(set(page.ids))


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (None, "did not include the profiled variant"),
        (TraceEvidence(problem="The profiler wrote no trace."), "The profiler wrote no trace."),
    ],
)
def test_what_is_missing_is_said_in_place(found: TraceEvidence | None, says: str) -> None:
    assert says in Page(FORMATS["html"](report(trace=found))).text


def test_xprofs_absence_is_one_line() -> None:
    found = trace()
    assert found.xprof is not None
    absent = replace(found, xprof=replace(found.xprof, error="XProf is not installed."))
    text = Page(FORMATS["html"](report(trace=absent))).text
    assert "XProf is not installed." in text and "Top device ops" in text


@pytest.mark.parametrize("layout", [trace_charts.WIDE, trace_charts.NARROW])
def test_charts_name_every_row_and_take_the_pages_colours(layout: trace_charts.Layout) -> None:
    found = trace()
    assert found.timeline is not None and found.summary is not None
    drawn = trace_charts.timeline(found.timeline, layout)
    assert drawn is not None
    text = Page(drawn).text
    assert "compute" in text and "idle: waiting for input" in text and "50.0 ms" in text
    assert "var(--work-compute)" in drawn and "#0202" not in drawn
    steps = trace_charts.steps(found.summary.steps, layout)
    assert steps is not None and "mean of 2" in steps and "#0202" not in steps


def test_nothing_is_drawn_of_nothing() -> None:
    assert trace_charts.timeline(Timeline("", None, None, 0.0, 0.0, ())) is None
    assert trace_charts.steps(()) is None


def test_patterns_and_colours_are_each_a_kinds_own() -> None:
    looks = trace_charts.LOOKS.values()
    assert len({look.hatch for look in looks}) == len({look.variable for look in looks}) == len(looks)

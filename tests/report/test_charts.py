"""Charts are text and shapes in the page's own colours."""

from __future__ import annotations

import re

import matplotlib
import msgspec
import pytest

from tfaudit.records import Comparison, Report
from tfaudit.report import charts

from .page import Page
from .sample import empty, interval, report, variant

LAYOUTS = pytest.mark.parametrize("layout", [charts.WIDE, charts.NARROW], ids=["wide", "narrow"])


def draw(document: Report, layout: charts.Layout = charts.WIDE) -> str:
    svg = charts.variants(document, layout)
    assert svg is not None
    return svg


@LAYOUTS
def test_text_stays_text_and_names_are_whole(layout: charts.Layout) -> None:
    shown = Page(draw(report(), layout)).text
    for words in ("baseline", "cached-input", "412 (402–422)", "ceiling: cached input"):
        assert words in shown


@LAYOUTS
def test_colours_and_fonts_are_the_page_s(layout: charts.Layout) -> None:
    for svg in (draw(report(), layout), charts.comparisons(report(), layout) or ""):
        assert "font-family" not in svg
        assert set(re.findall(r"(?:fill|stroke): ([^;\"]+)", svg)) <= {
            "none", "#000000", "var(--ink)", "var(--muted)", "var(--rule)", "var(--bar)",
            "var(--bar-own)", "var(--ceiling)", "var(--page)",
        }  # fmt: skip
        # Black is only the invisible edge of a dot.
        assert svg.count("stroke: #000000") == svg.count("stroke: #000000; stroke-opacity: 0")


def test_a_chart_is_an_image_with_a_name_and_a_description() -> None:
    page = Page(draw(report()))
    root = page.attributes("svg")[0]
    assert root["role"] == "img"
    assert set((root["aria-labelledby"] or "").split()) <= set(page.ids)
    assert "baseline 412 (402–422); cached-input 1,330" in page.text


def test_no_two_charts_share_an_id() -> None:
    ids = [
        identifier
        for layout in (charts.WIDE, charts.NARROW)
        for svg in (charts.variants(report(), layout), charts.comparisons(report(), layout))
        for identifier in Page(svg or "").ids
    ]
    assert len(ids) == len(set(ids)) > 8


def test_there_is_no_chart_of_nothing() -> None:
    assert charts.variants(empty()) is None
    assert charts.comparisons(empty()) is None


def test_input_far_faster_than_training_is_torn_and_not_hidden() -> None:
    rates = {"baseline": 400.0, "cached-input": 410.0, "input-only": 90_000.0}
    svg = draw(report(variants=tuple(variant(name, rate) for name, rate in rates.items())))
    assert "90,000" in svg
    assert "var(--page)" in svg
    assert ">20,000<" not in svg  # the axis ends with the others


def test_the_ceiling_is_never_torn_off() -> None:
    """How far away it is, is what the chart is for."""
    rates = {"baseline": 100.0, "cached-input": 2_000.0, "input-only": 90.0}
    svg = draw(report(variants=tuple(variant(name, rate) for name, rate in rates.items())))
    assert "var(--page)" not in svg
    assert "var(--ceiling)" in svg


def test_rates_of_zero_can_be_drawn() -> None:
    still = variant("baseline", 1.0, step_ms=None)
    assert draw(report(variants=(msgspec.structs.replace(still, samples_per_s=interval(0.0)),)))


def test_drawing_leaves_matplotlib_as_it_was() -> None:
    before = dict(matplotlib.rcParams)
    draw(report())
    assert dict(matplotlib.rcParams) == before


@LAYOUTS
def test_a_single_comparison_can_be_drawn(layout: charts.Layout) -> None:
    same = Comparison(variant="xla", reference="baseline", ratio=interval(1.0), verdict="no difference")
    assert "no difference" in (charts.comparisons(report(comparisons=(same,)), layout) or "")

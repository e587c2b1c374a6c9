"""The summary in the terminal."""

from __future__ import annotations

import pytest

from tfaudit.records import Status
from tfaudit.report.text import columns, fill, render

from .sample import answer, check, report


@pytest.mark.parametrize("width", [48, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """Code excepted: half a line cannot be pasted."""
    for line in render(report(), width=width).splitlines():
        assert columns(line) <= width or "dataset = " in line


def test_colour_changes_nothing_but_colour() -> None:
    import re

    coloured = render(report(), color=True)
    assert "\x1b[31m" in coloured
    assert re.sub(r"\x1b\[[0-9]+m", "", coloured) == render(report())


def test_the_table_is_aligned() -> None:
    lines = render(report()).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("variant"))
    header, baseline, cached = lines[start : start + 3]
    assert len(header) == len(baseline) == len(cached)
    assert baseline.endswith("reference")
    assert cached.endswith("3.23× (3.17–3.29)")


def test_a_narrow_table_drops_the_intervals() -> None:
    assert "412 (402–422)  " in render(report(), width=80)
    assert " 412  " in render(report(), width=48)


def test_a_finding_has_its_gain_and_its_fix_as_written() -> None:
    shown = render(report())
    assert "✗ fail   1.8 Title of 1.8 · 3.23× (3.17–3.29)" in shown
    assert "fix: Prefetch last:" in shown
    assert "    dataset = dataset.prefetch(tf.data.AUTOTUNE)\n" in shown


def test_without_a_fix_the_beginning_of_the_general_one_is_shown() -> None:
    general = check("1.1", Status.FAIL, how_to_fix="First\nparagraph.\n\nSecond.")
    shown = render(report(checks=(general,)))
    assert "fix: First paragraph.\n" in shown
    assert "Second" not in shown


def test_a_check_that_broke_is_shown_beside_the_findings() -> None:
    assert "◆ error  5.3 Title of 5.3" in render(report())


def test_answers_stand_behind_the_findings_those_that_contradict_first() -> None:
    shown = render(report())
    places = [shown.index(f"{number} Title of") for number in ("5.2", "7.2", "5.3", "7.1", "7.3")]
    assert places == sorted(places)


def test_a_long_status_does_not_touch_the_title() -> None:
    item = check("7.3", Status.NOT_APPLICABLE, by_answer=True, answer=answer("n-a"))
    assert "– not applicable 7.3 Title of 7.3\n" in render(report(checks=(item,)))


def test_wide_characters_count_twice_and_long_words_are_broken() -> None:
    assert columns("日本a\u0301") == 5
    assert all(columns(line) <= 10 for line in fill("日" * 30 + " ab " + "x" * 25, 10))
    assert fill("", 10) == [""]

"""What the terminal shows while a run goes on."""

from __future__ import annotations

import pytest
from checks.builders import failed, measured

from tfaudit.progress import Bars, Lines

VARIANTS = ("baseline", "cached-input")


def test_a_log_has_a_line_for_each_stage_and_each_finished_variant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = Lines(VARIANTS, color=False)
    lines.stage_started("launch 1 of 2: loading")
    lines.variant_started("baseline")
    lines.phase_started("baseline", "build")
    lines.waiting("baseline", "build", 3.0, 300.0)
    lines.block_measured("baseline", 0.5, 100.0)
    lines.variant_finished(measured("baseline"))
    lines.variant_finished(failed("cached-input", "killed"))
    assert capsys.readouterr().err.splitlines() == [
        "   0 s  launch 1 of 2: loading",
        "baseline      100 samples/s ±0%",
        "cached-input  killed  cached-input ended: killed.",
    ]


def shown(bars: Bars) -> tuple[str, str | None]:
    return bars._bar.label, bars._bar.current_item


def test_of_several_that_load_the_one_that_takes_longest_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    bars = Bars(VARIANTS, color=False)
    bars.stage_started("launch 1 of 2: loading")
    bars.phase_started("baseline", "build")
    bars.phase_started("cached-input", "load")
    bars.waiting("cached-input", "load", 1.0, 300.0)
    assert shown(bars) == ("   0 s  launch 1 of 2: loading", "baseline building and compiling")
    bars.waiting("baseline", "build", 31.0, 300.0)
    assert shown(bars)[1] == "baseline building and compiling 31 s (at most 300)"
    bars.phase_started("baseline", "measure")
    assert shown(bars)[1] == "cached-input loading the program 1 s"


def test_the_bar_goes_on_over_all_launches(capsys: pytest.CaptureFixture[str]) -> None:
    bars = Bars(VARIANTS, color=False)
    bars.block_measured("baseline", 0.5, 1234.0)
    assert (bars._bar.pos, shown(bars)[1]) == (50, "baseline 1,230 samples/s")
    bars.stage_started("launch 2 of 2: loading")
    bars.phase_started("baseline", "build")
    assert bars._bar.pos == 50

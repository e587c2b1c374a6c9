"""What the checks are, in words."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tfaudit import documentation
from tfaudit.checking import Check, load
from tfaudit.documentation import explained, listed, markdown
from tfaudit.report.text import Terminal, columns

ROOT = Path(__file__).parents[1]

CHECK = replace(
    load()["input-headroom"],
    id="warm-chairs",
    number="9.1",
    section="Chairs",
    title="Warm chairs",
    question="Are they warm?",
    needs=("baseline", "xla", "program"),
    uses=("price",),
    threshold="cold fails",
    looks_at="`Chairs`, all of them.",
    why="Cold ones are cold, and " + "nobody likes to sit on them. " * 3,
    how_to_fix="Sit.",
)


def shown(item: Check, color: bool = False, width: int = 60) -> str:
    return "\n".join(explained(item, Terminal(color, width)))


def test_a_check_is_explained() -> None:
    assert (
        shown(CHECK)
        == """\
9.1 Warm chairs
Chairs · warm-chairs
Question           Are they warm?
What it looks at   Chairs, all of them.
Why it matters     Cold ones are cold, and nobody likes to
                   sit on them. nobody likes to sit on them.
                   nobody likes to sit on them.
How to fix         Sit.
Threshold          cold fails
Needs              the variants baseline, xla; the captured
                   job
Uses, if there     the price per hour"""
    )


def test_colour_changes_nothing_but_colour() -> None:
    assert "\x1b[1m9.1 Warm chairs" in shown(CHECK, color=True)
    assert re.sub(r"\x1b\[[0-9]+m", "", shown(CHECK, color=True)) == shown(CHECK)


@pytest.mark.parametrize("item", load().values(), ids=lambda item: item.number)
def test_all_of_every_check_is_told_and_no_line_is_too_wide(item: Check) -> None:
    text = shown(item, width=70)
    assert all(columns(line) <= 70 for line in text.splitlines())
    for part in (item.question, item.looks_at, item.why, item.how_to_fix, item.threshold):
        assert "".join(part.replace("`", "").split()) in "".join(text.split())  # a long word is broken


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ((), ""),
        (("baseline",), "the variant baseline"),
        (
            ("price", "xla", "trace", "no-xla"),
            "the variants xla, no-xla; the price per hour, the profiler's trace",
        ),
    ],
)
def test_what_a_check_needs_in_words(names: tuple[str, ...], words: str) -> None:
    assert listed(names) == words


def test_a_check_in_markdown(monkeypatch: pytest.MonkeyPatch) -> None:
    item = replace(CHECK, title="Warm_chairs <b>", looks_at="`a_b`, c_d and *e*.", why="")
    monkeypatch.setattr(documentation, "load", lambda: {"warm-chairs": item})
    assert markdown().endswith(
        """\

## 9 Chairs

### 9.1 Warm\\_chairs \\<b>

- **Id:** `warm-chairs`
- **Decided by:** the variants baseline, xla; the captured job, the price per hour
- **Question:** Are they warm?
- **What it looks at:** `a_b`, c\\_d and \\*e\\*.
- **How to fix:** Sit.
- **Threshold:** cold fails
"""
    )


def test_a_variant_in_markdown() -> None:
    assert "\n- `no-xla`: Not compiled with XLA (`jit_compile=False`).\n" in markdown()
    assert (
        "\n- `batch-x4`: Cached input in batches of four times the size."
        " Unless named, where there is an accelerator only.\n"
    ) in markdown()


def test_the_documentation_is_up_to_date() -> None:
    """`make docs` makes it."""
    assert (ROOT / "docs" / "checks.md").read_text(encoding="utf-8") == markdown()


def test_the_module_writes_the_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tfaudit.documentation", str(tmp_path / "checks.md")]
    subprocess.run(command, cwd=ROOT, check=True)
    assert (tmp_path / "checks.md").read_text(encoding="utf-8") == markdown()

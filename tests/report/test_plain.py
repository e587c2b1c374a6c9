"""Text from programs, made safe; and the little markup of documentation."""

from __future__ import annotations

import time

import pytest

from tfaudit.report import plain, reading
from tfaudit.report.prose import prose, spans


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07a\x1b]8;;x\x1b\\b", "ab"),
        ("\x9b2Ja\x1bcb", "ab"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("a\x00\x08\x7f\ud800\ufffeb", "ab"),
        ("a\u202eb", "a[U+202E]b"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("𝔘 日本語 é", "𝔘 日本語 é"),
    ],
)
def test_only_what_can_be_read_is_left(text: str, shown: str) -> None:
    assert plain.plain(text) == shown


def test_an_escape_that_never_ends_is_harmless_and_quick() -> None:
    started = time.perf_counter()
    assert "\x1b" not in plain.plain("\x1b]" * 100_000 + "\x1b[" * 100_000 + "\x1bP" * 100_000)
    assert time.perf_counter() - started < 2


def test_one_line_is_cut_with_an_ellipsis() -> None:
    assert plain.one_line(" a\n  b ") == "a b"
    assert plain.one_line("x" * 20, 10) == "x" * 9 + "…"


def test_the_tail_says_what_is_missing() -> None:
    assert plain.tail("short\n") == "short"
    assert plain.tail("x" * 1500, 500).startswith("… 1,000 characters before this")


def test_documentation_has_paragraphs_code_and_lists() -> None:
    text = "One\nparagraph with `code`.\n\n- first\n  goes on\n- second\n\n    x = <1>\n      y"
    assert prose(text) == (
        "<p>One paragraph with <code>code</code>.</p>\n"
        "<ul><li>first goes on</li><li>second</li></ul>\n"
        '<pre class="code" tabindex="0"><code>x = &lt;1&gt;\n  y</code></pre>'
    )


def test_advice_keeps_its_lines() -> None:
    assert prose("a\nb", keep_lines=True) == "<p>a<br>b</p>"


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("import mlflow\nmlflow.autolog()", "    import mlflow\n    mlflow.autolog()"),
        ("Pad the batches.", "Pad the batches."),
        ("Prefetch last:\nds.prefetch(2)", "Prefetch last:\n    ds.prefetch(2)"),
        ("Call `f` with\ntwo", "Call `f` with\ntwo"),
        ("say\n    code()", "say\n    code()"),
    ],
)
def test_a_line_of_advice_that_is_no_sentence_is_code(text: str, marked: str) -> None:
    assert reading.advice(text) == marked


def test_fenced_code_is_code() -> None:
    assert prose("See:\n```python\na  = 1\n\nb\n```\nDone.") == (
        '<p>See:</p>\n<pre class="code" tabindex="0"><code>a  = 1\n\nb</code></pre>\n<p>Done.</p>'
    )


def test_a_single_backtick_is_a_backtick() -> None:
    assert spans("a ` <b>") == "a ` &lt;b&gt;"
    assert spans("``a`` `b`") == "<code>a</code> <code>b</code>"

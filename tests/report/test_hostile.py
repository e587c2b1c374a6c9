"""Whatever a program calls its things, no format lets it out of its place."""

from __future__ import annotations

import re
from functools import cache

import msgspec
import pytest

from tfaudit.records import Report
from tfaudit.report import FORMATS, markdown
from tfaudit.report.text import render as terminal

from .page import Page
from .sample import poisoned, report

HOSTILE = {
    "script": "</script><script>alert(1)</script>",
    "comment": "<!-- <script> ]]> -->",
    "template": "{{ 7*7 }}{% raw %}{# #}",
    "image": '"><img src=x onerror="alert(1)">',
    "quote": "' onmouseover='alert(1)' x=\"",
    "style": "</style></title></textarea>",
    "escapes": "\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x9b2J\x08\x00\x7f",
    "table": "a | b\n| c |\r\n\r\n# d\n- e\n```\nf\n```",
    "markdown": "[a](javascript:b) ![c](d) **e** _f_ `g` ~~h~~ @someone #12 $x$ \\",
    "separators": "a\u2028b\u2029c\x85d\x0be",
    "direction": "abc\u202edef\u2066ghi\u200f",
    "astral": "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \U0001f9ea \U0010ffff 日本語",
    "mathematics": r"$\frac{1}{$ $x^2$ \$",
    "empty": "",
    "long": "x" * 10_000,
    "long-words": "word " * 2_000,
}

UNSEEN = "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"


@cache
def page(text: str) -> str:
    """Drawing is what takes the time."""
    return FORMATS["html"](poisoned(text))


ALL = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)


@ALL
def test_html_keeps_its_structure(text: str) -> None:
    """The page has the same elements as that of a harmless report: none more, none less."""
    harmless, hostile = Page(page("harmless")), Page(page(text))
    for tag in ("script", "style", "img", "title", "h1", "a", "details", "iframe", "noscript"):
        assert len(hostile.attributes(tag)) == len(harmless.attributes(tag)) or not text
    assert len(hostile.ids) == len(set(hostile.ids))
    for _, attributes in hostile.tags:
        assert not [name for name in attributes if name.startswith("on")]


@ALL
def test_html_embeds_the_document_unchanged(text: str) -> None:
    assert page(text).count('id="report-document"') == 1
    assert msgspec.json.decode(Page(page(text)).document, type=Report) == poisoned(text)


@ALL
def test_html_holds_no_control_and_no_direction_characters(text: str) -> None:
    assert not re.search(UNSEEN, page(text))


def test_html_does_not_run_templates_in_values() -> None:
    assert "{{ 7*7 }}" in page(HOSTILE["template"])
    assert "49{%" not in page(HOSTILE["template"])


def test_long_values_are_cut_on_the_page_and_whole_in_the_document() -> None:
    html = page(HOSTILE["long"])
    document = Page(html).document
    assert HOSTILE["long"] in document
    assert len(html) - len(document) < 900_000


@ALL
def test_markdown_keeps_its_lines(text: str) -> None:
    """One line per row whatever stands in it, and the same number of cells in each."""
    lines = FORMATS["md"](poisoned(text)).splitlines()
    assert len(lines) <= 40
    table = [line for line in lines if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {5}
    assert not [line for line in lines if line.startswith(("# ", "- ", "```"))]


@ALL
def test_markdown_holds_no_tags_links_or_mentions(text: str) -> None:
    outside = re.sub(r"`[^`]+`", "", FORMATS["md"](poisoned(text)).replace("\\`", ""))
    assert set(re.findall(r"</?[a-z!][^>]*>", outside)) <= {"<sub>", "</sub>"}
    assert not re.search(r"(?<!\\)\[|@\w|#\w|[\x00-\x09\x0b-\x1f\u202e]", outside)


def test_markdown_escapes_what_it_means_to_show() -> None:
    assert markdown.escape("a|b_c*d <e> & `f|g`") == r"a\|b\_c\*d &lt;e&gt; &amp; `f\|g`"
    assert markdown.escape("one ` tick") == r"one \` tick"
    assert markdown.escape("@someone #12") == "@\u200bsomeone #\u200b12"


@ALL
def test_text_sends_nothing_to_the_terminal_but_text(text: str) -> None:
    shown = terminal(poisoned(text))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", shown)


@ALL
def test_coloured_text_holds_only_our_own_escapes(text: str) -> None:
    shown = terminal(poisoned(text), color=True)
    assert "\x1b" not in re.sub(r"\x1b\[[0-9]+m", "", shown)
    assert "\x1b[31mred" not in shown
    assert re.sub(r"\x1b\[[0-9]+m", "", shown) == terminal(poisoned(text))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_survives_numbers_that_are_none(name: str) -> None:
    bare = msgspec.to_builtins(report())
    for variant in bare["variants"]:
        variant.update(samples_per_s=None, step_ms=None, compile_s=None, batch_size=None)
        variant.update(resolved=None, failure=None)
    bare["program"].update(parameters=None, layers=None, cardinality=None, location=None)
    bare["target"].update(commit=None)
    assert FORMATS[name](msgspec.convert(bare, Report))

"""What holds for every format."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tfaudit.records import Report, Status
from tfaudit.report import FORMATS

from .page import Page
from .sample import answer, check, checks, empty, report

ROOT = Path(__file__).parents[2]
READABLE = ["html", "md", "text"]


def visible(name: str, document: Report) -> str:
    text = FORMATS[name](document)
    return Page(text).text if name == "html" else text


def test_there_are_four_formats() -> None:
    assert list(FORMATS) == ["html", "json", "md", "text"]


def test_importing_the_package_imports_no_renderer() -> None:
    """`tfaudit --help` lists the formats without paying for jinja2 and matplotlib."""
    code = "import sys, tfaudit.report; print(sorted({'jinja2', 'matplotlib', 'click'} & set(sys.modules)))"
    assert python(code) == "[]\n"


def test_markdown_and_text_need_no_matplotlib() -> None:
    code = (
        "import sys; from tests.report.sample import report; from tfaudit.report import FORMATS\n"
        "[FORMATS[name](report()) for name in ('json', 'md', 'text')]\n"
        "print('matplotlib' in sys.modules)"
    )
    assert python(code) == "False\n"


def test_json_decodes_to_the_same_report() -> None:
    assert msgspec.json.decode(FORMATS["json"](report()), type=Report) == report()


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_report_gives_the_same_bytes(name: str) -> None:
    assert FORMATS[name](report()) == FORMATS[name](report())


def test_another_process_gives_the_same_bytes() -> None:
    """Neither hash seeds nor the time of day reach the page."""
    code = (
        "import sys; from tests.report.sample import report; from tfaudit.report import FORMATS\n"
        "sys.stdout.buffer.write(FORMATS['html'](report()).encode())"
    )
    assert python(code, seed="7") == FORMATS["html"](report())


@pytest.mark.parametrize("name", READABLE)
def test_no_two_statuses_look_alike(name: str) -> None:
    """Each status is told by its word, and by a character or shape of its own."""
    shown = {s: visible(name, report(checks=(check("1.1", s),))) for s in Status}
    assert len(set(shown.values())) == len(Status)
    for status, text in shown.items():
        assert status.value.replace("-", " ") in text


def test_every_status_has_a_shape_of_its_own() -> None:
    page = Page(FORMATS["html"](report()))
    used = {attributes.get("href") for attributes in page.attributes("use")}
    drawn = {attributes.get("id") for attributes in page.attributes("symbol")}
    for status in Status:
        assert f"#icon-{status.value}" in used
        assert f"icon-{status.value}" in drawn


@pytest.mark.parametrize("name", FORMATS)
def test_a_run_without_anything_still_gives_a_document(name: str) -> None:
    assert FORMATS[name](empty())


@pytest.mark.parametrize("name", READABLE)
def test_an_interrupted_run_says_so(name: str) -> None:
    assert "Incomplete run" in visible(name, report(complete=False))
    assert "Incomplete run" not in visible(name, report())


@pytest.mark.parametrize("name", READABLE)
def test_without_a_price_the_reader_learns_how_to_give_one(name: str) -> None:
    assert "--price 1.006" in " ".join(visible(name, report()).split())
    assert "--price" not in visible(name, report(usd_per_hour=1.006))


@pytest.mark.parametrize("name", READABLE)
def test_what_was_not_measured_is_a_dash_with_its_reason(name: str) -> None:
    shown = visible(name, report())
    assert "—" in shown
    assert "The step raised InvalidArgumentError." in " ".join(shown.split())


@pytest.mark.parametrize("name", READABLE)
def test_failures_come_before_warnings_and_each_by_gain(name: str) -> None:
    shown = visible(name, report())
    if name == "html":
        shown = shown[shown.index("each by its gain") :]
    places = [shown.index(f"{number} Title of") for number in ("4.1", "1.8", "5.2")]
    assert places == sorted(places)


@pytest.mark.parametrize("name", READABLE)
def test_answers_are_shown_as_answers(name: str) -> None:
    """Those that decide, those that agree, and those that say the opposite."""
    agreeing = check("8.1", Status.PASS, answer=answer("yes"))
    shown = " ".join(visible(name, report(checks=(*checks(), agreeing))).split()).replace("**", "")
    for words in (
        "Contradicted: answered no by Ann on 2026-01-31: In vain.",
        "Contradicted: answered yes by Ann on 2026-01-31: In vain.",
        "Answered no by Ann: In vain.",
        "Answered yes.",
    ):
        assert words in shown
    agreement = (
        "yes by Ann on 2026-01-31: In vain. The check decided" if name == "html" else "Answered yes by"
    )
    assert agreement in shown


@pytest.mark.parametrize("name", READABLE)
def test_where_a_person_is_asked_it_says_so(name: str) -> None:
    asked = "Waiting for a person's answer: 1"
    assert asked in visible(name, report())
    assert asked not in visible(name, report(checks=(check("1.1", Status.PASS),)))


def python(code: str, seed: str = "0") -> str:
    """What a new interpreter prints."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, check=True
    )
    return done.stdout.decode()

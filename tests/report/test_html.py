"""What the page is, beyond what all formats are."""

from __future__ import annotations

import base64
import hashlib
import re
from itertools import pairwise

import msgspec
import pytest
from jinja2 import UndefinedError

from tfaudit.records import Failure, Interval, Report, Stage, Status
from tfaudit.report import FORMATS, html, templates

from .page import Page
from .sample import answer, check, empty, program, report, variant, variants

REPORTS = {"full": report(), "empty": empty()}


def render(document: Report) -> Page:
    return Page(FORMATS["html"](document))


@pytest.fixture(params=REPORTS.values(), ids=REPORTS, scope="module")
def page(request: pytest.FixtureRequest) -> Page:
    return render(request.param)


def test_ids_are_unique_and_links_lead_to_them(page: Page) -> None:
    assert len(page.ids) == len(set(page.ids))
    references = [a["href"] for tag in ("a", "use") for a in page.attributes(tag)]
    references += [f"#{i}" for _, a in page.tags for i in (a.get("aria-labelledby") or "").split()]
    references += re.findall(r"url\((#[^)]+)\)", str(page.tags))
    assert {reference[1:] for reference in references if reference} <= set(page.ids)


def test_headings_are_in_order(page: Page) -> None:
    """One first heading, and none that skips a level on the way down."""
    levels = [level for level, _ in page.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below <= above + 1 for above, below in pairwise(levels))


def test_the_page_has_landmarks_and_a_language(page: Page) -> None:
    tags = [tag for tag, _ in page.tags]
    assert {"header", "nav", "main", "footer"} <= set(tags)
    assert page.attributes("html") == [{"lang": "en"}]


def test_nothing_is_loaded_from_anywhere(page: Page) -> None:
    for tag, attributes in page.tags:
        for name in ("src", "srcset", "data", "action", "poster", "background"):
            assert not attributes.get(name), (tag, attributes)
        assert not re.match("(?i)[a-z]+:", attributes.get("href") or "")
        assert tag not in ("link", "base", "iframe", "object", "embed")
    for attributes, text in page.code:
        if not attributes.get("type"):
            assert not re.search(r"https?:|@import|url\(|fetch\(|import\(", text)


def test_the_policy_allows_the_one_script_and_no_network() -> None:
    page = render(report())
    policy = next(a["content"] for a in page.attributes("meta") if a.get("http-equiv"))
    script = page.code[-1][1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == (f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'")


def test_every_table_has_a_caption_and_headed_rows_and_columns() -> None:
    tags = [tag for tag, _ in render(report()).tags]
    assert tags.count("table") == tags.count("caption") > 4
    for attributes in render(report()).attributes("th"):
        assert attributes.get("scope") in ("row", "col")


def test_every_table_scrolls_in_a_box_that_the_keyboard_reaches() -> None:
    page = render(report())
    boxes = [a for a in page.attributes("div") if a.get("class") == "scroll"]
    assert len(boxes) == len(page.attributes("table"))
    assert all(box["tabindex"] == "0" and box["role"] == "region" for box in boxes)
    assert len({box["aria-label"] for box in boxes}) == len(boxes)


def test_the_headline_is_the_first_heading() -> None:
    assert render(report()).headings[0] == (1, "Input-bound: training reaches 31\xa0% of its ceiling.")


def test_each_check_is_a_details_element_with_its_documentation() -> None:
    page = render(report())
    items = [a for a in page.attributes("details") if a.get("class") == "check"]
    assert len(items) == len(report().checks)
    assert sorted(a["data-status"] or "" for a in items) == sorted(c.status.value for c in report().checks)
    for words in ("What it looks at The rate on cached input.", "Why it matters The device waits.",
                  "How to fix Use prefetch", "Threshold fail from 1.25×", "Measured gain 3.23×",
                  "memory 2.20 GiB", "prefetched no", "utilisation —"):  # fmt: skip
        assert words in page.text


def test_a_question_is_shown_where_a_person_is_asked() -> None:
    manual = check("2.1", Status.MANUAL, question="Is it?")
    decided = check("2.2", Status.PASS, question="Are they?")
    text = render(report(checks=(manual, decided))).text
    assert "Question Is it?" in text and "Are they?" not in text
    assert "Question Are they?" in render(report()).text


def test_an_answer_has_a_mark_of_its_own() -> None:
    """So that its verdict looks like no measurement."""
    answered = check("7.3", Status.PASS, by_answer=True, answer=answer("yes"))
    marks = [a.get("href") for a in render(report(checks=(answered,))).attributes("use")]
    assert marks.count("#icon-manual") == 2  # beside the count of manual checks, and here


def test_checks_with_the_same_id_get_anchors_of_their_own() -> None:
    twins = (check("1.1", Status.PASS, id="a b"), check("1.2", Status.PASS, id="A-b"))
    anchor = html.anchors(twins)
    assert [anchor(twin) for twin in twins] == ["check-a-b", "check-a-b--2"]


def test_sections_and_checks_follow_the_numbers() -> None:
    text = FORMATS["html"](report())
    places = [text.index(f'<span class="number">{n}</span><span') for n in ("1.8", "1.9", "1.10")]
    assert places == sorted(places)


def test_what_needs_javascript_is_hidden_without_it() -> None:
    page = render(report())
    filters = [a for a in page.attributes("div") if a.get("class") == "filter"]
    download = next(a for a in page.attributes("p") if a.get("id") == "download")
    assert "hidden" in filters[0]
    assert "hidden" in download


def test_the_price_and_the_interval_are_shown() -> None:
    priced = variant("baseline", 412.0, samples_per_usd=Interval(median=1.48e6, low=1.45e6, high=1.5e6))
    text = render(report(usd_per_hour=1.006, variants=(priced, *variants()[1:]))).text
    assert "Samples per dollar 1,480,000 1,450,000–1,500,000 at 1.006 USD per hour" in text


def test_failures_are_shown_with_their_traceback() -> None:
    text = render(report()).text
    for words in ("Phase warm-up", "Kind raised", "Exit code 1", "Signal SIGABRT",
                  'File "train.py", line 22'):  # fmt: skip
        assert words in text


def test_a_variant_that_only_logs_has_not_failed() -> None:
    assert "not timed: Title of placement" in render(report()).text


def test_a_variant_that_makes_no_sense_for_the_job_did_not_fail() -> None:
    for kind, state in (
        ("unsupported", "not applicable"),
        ("not-applied", "not applicable"),
        ("raised", "failed"),
    ):
        failure = Failure(phase="build", kind=kind, message="Nothing is read.")
        held = variant("source-cached", None, purpose="time", status="failed", failure=failure)
        text = render(report(variants=(variant("baseline", 412.0), held))).text
        assert f"{state}: Nothing is read." in text


def test_the_pipeline_tells_serial_stages_and_python() -> None:
    text = render(report()).text
    assert "1 from_generator" in text
    assert "calls Python" in text
    assert "2 interleave read train.py:18 serial" in text
    assert "3 map decode train.py:23 AUTOTUNE" in text
    assert "4 batch 32 drops the remainder" in text


def test_a_stage_without_a_function_is_not_called_serial() -> None:
    assert html.parallel_calls(Stage(op="batch")) == ""
    assert html.parallel_calls(Stage(op="flat_map")) == "serial"
    assert html.parallel_calls(Stage(op="map", num_parallel_calls=8)) == "8"


def test_left_out_callbacks_are_named_with_the_reason() -> None:
    assert "ModelCheckpoint keras.callbacks left out it writes files" in render(report()).text


def test_data_that_is_no_pipeline_is_named() -> None:
    arrays = msgspec.structs.replace(program(), pipeline=(), data_kind="arrays")
    assert "The data is of kind arrays" in render(report(program=arrays)).text


def test_a_full_checklist_stays_under_a_megabyte() -> None:
    many = tuple(
        check(f"{section}.{n}", Status.WARN, looks_at="word " * 80, why="word " * 80,
              how_to_fix="word " * 80, fix="    code = code\n" * 5)
        for section in range(1, 9) for n in range(1, 9)
    )  # fmt: skip
    assert len(FORMATS["html"](report(checks=many)).encode()) < 1_000_000


def test_an_unknown_name_in_a_template_is_an_error() -> None:
    template = templates.environment(autoescape=True).from_string("{{ report.misspelt }}")
    with pytest.raises(UndefinedError):
        template.render(report=report())


def test_one_of_the_two_template_folders_is_there() -> None:
    assert any((folder / "report.html").is_file() for folder in templates.FOLDERS)


def test_a_time_that_is_none_is_shown_as_it_is() -> None:
    assert "yesterday" in render(report(created_at="yesterday")).text
    assert "2025-01-31 20:52 UTC" in render(report()).text

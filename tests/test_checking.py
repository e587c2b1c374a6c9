"""What a check is: registered once, documented, handed no more than it needs, and stopping no other."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date
from typing import Any

import msgspec
import pytest
from checks.builders import evidence, judged, program

from tfaudit import checking
from tfaudit.checking import Check, choose, load, rows, run_checks
from tfaudit.errors import UsageError
from tfaudit.evidence import FACTS, Evidence
from tfaudit.records import Answer, CheckResult, Fact, Interval, Said, Status
from tfaudit.variants import VARIANTS

CHECKLIST = [
    *(f"1.{item}" for item in range(1, 13)),
    *("2.1", "2.2"),
    *(f"3.{item}" for item in range(1, 6)),
    *(f"4.{item}" for item in range(1, 6)),
    *(f"5.{item}" for item in range(1, 7)),
    *(f"6.{item}" for item in range(1, 8)),
    *(f"7.{item}" for item in range(1, 5)),
]
OURS = [*(f"2.{item}" for item in range(3, 8)), *(f"8.{item}" for item in range(1, 9))]

CHECKS = list(load().values())


def by_number(item: Check) -> str:
    return item.number


def test_the_checklist_has_41_items() -> None:
    assert len(CHECKLIST) == 41


def test_every_item_is_registered_in_the_order_of_the_checklist() -> None:
    wanted = sorted([*CHECKLIST, *OURS], key=lambda number: [int(part) for part in number.split(".")])
    assert [item.number for item in load().values()] == wanted


def test_ids_titles_and_numbers_are_unique() -> None:
    for attribute in ("id", "title", "number"):
        counted = Counter(getattr(item, attribute) for item in load().values())
        assert [value for value, count in counted.items() if count > 1] == []
    assert [item.id for item in load().values()] == list(load())


def test_ids_are_words_with_dashes() -> None:
    assert [name for name in load() if not name.replace("-", "").isalnum() or name != name.lower()] == []


def test_each_section_has_one_title() -> None:
    sections = {(item.number.partition(".")[0], item.section) for item in load().values()}
    assert sorted(sections) == [
        ("1", "Performance analysis"),
        ("2", "Instance choice"),
        ("3", "Storage to CPU"),
        ("4", "CPU bottlenecks"),
        ("5", "Using the GPU better"),
        ("6", "Several devices"),
        ("7", "The project"),
        ("8", "Can these numbers be trusted?"),
    ]


@pytest.mark.parametrize("item", CHECKS, ids=by_number)
def test_the_docstring_of_a_check_has_every_heading(item: Check) -> None:
    assert item.title and not item.title.endswith(".")
    for text in (item.looks_at, item.why, item.how_to_fix):
        assert text and "\n" not in text
        assert not any(heading in text for heading in checking.HEADINGS)


@pytest.mark.parametrize("item", CHECKS, ids=by_number)
def test_a_check_names_variants_and_facts_that_exist(item: Check) -> None:
    assert set(item.needs) | set(item.uses) <= {*VARIANTS, *FACTS}
    assert set(item.variants) <= set(VARIANTS)


@pytest.mark.parametrize("item", CHECKS, ids=by_number)
def test_a_check_judges_an_empty_run_without_an_error(item: Check) -> None:
    """Everything is missing: that is unknown, not applicable or for a person to tell, and never a pass."""
    (result,) = run_checks(evidence(), [item])
    assert result.status in (Status.UNKNOWN, Status.NOT_APPLICABLE, Status.MANUAL)
    assert result.summary.endswith((".", "?"))


def test_a_gain_that_is_only_a_bound_is_told_apart() -> None:
    """Cached input bounds what mending the pipeline can give; a measured variant gives what it gave."""
    gain = Interval(median=2.0, low=1.5, high=2.5)
    measured, bound = checking.warned("", gain=gain), checking.warned("", at_most=gain)
    assert (measured.gain, measured.gain_is_bound) == (gain, False)
    assert (bound.gain, bound.gain_is_bound) == (gain, True)
    assert (checking.warned("").gain, checking.warned("").gain_is_bound) == (None, False)


def test_a_trace_is_had_by_running_the_profiled_variant() -> None:
    assert "profiled" in load()["profiler-trace"].variants


# Choosing -------------------------------------------------------------------------------------------


def test_nothing_named_means_all() -> None:
    assert list(choose([])) == list(load())


def test_checks_are_chosen_by_number_or_id_and_keep_the_order_of_the_checklist() -> None:
    assert list(choose(["5.2", "input-bound-training", "1.8", "1.1"])) == [
        "throughput-reported",
        "input-bound-training",
        "xla-effect",
    ]


@pytest.mark.parametrize("name", ["9.9", "1", "input_bound_training", ""])
def test_a_name_that_is_no_check_gives_one_sentence(name: str) -> None:
    with pytest.raises(UsageError) as raised:
        choose(["1.8", name])
    assert str(raised.value) == (
        f"There is no check {name!r}: give a number such as 1.8 or an id such as input-bound-training;"
        " `tfaudit checks` lists them."
    )


# Running --------------------------------------------------------------------------------------------


def test_a_check_that_raises_is_an_error_and_stops_no_other() -> None:
    def broken(given: Evidence) -> Any:
        raise KeyError("no such column")

    before, after = load()["throughput-reported"], load()["experiments-tracked"]
    middle = replace(load()["input-bound-training"], judge=broken)
    given = evidence(baseline=100.0, cached_input=140.0, program=program())
    results = run_checks(given, [before, middle, after])
    assert [result.status for result in results] == [Status.WARN, Status.ERROR, Status.WARN]
    assert results[1].summary == "The check itself failed: KeyError('no such column')."
    assert results[1].detail.startswith("Traceback (most recent call last)")
    assert "in broken" in results[1].detail
    assert (results[1].number, results[1].title) == (middle.number, middle.title)


def test_a_check_is_not_asked_when_a_need_is_missing() -> None:
    """It says why, in the words of what is missing."""

    def never(given: Evidence) -> Any:
        raise AssertionError

    (result,) = run_checks(evidence(baseline=100.0), [replace(load()["samples-per-dollar"], judge=never)])
    assert result.status == Status.UNKNOWN
    assert result.summary.startswith("No price is known")


def test_a_check_is_handed_nothing_but_what_it_names() -> None:
    seen: list[Evidence] = []

    def look(given: Evidence) -> Any:
        seen.append(given)
        return checking.passed("Seen.")

    item = replace(load()["input-headroom"], judge=look)
    given = evidence(
        baseline=100.0, cached_input=1.0, input_only=1.0, xla=1.0, program=program(), usd_per_hour=1.0
    )
    run_checks(given, [item])
    assert [result.id for result in seen[0].variants] == ["cached-input", "input-only"]
    assert (seen[0].program, seen[0].usd_per_hour) == (None, 1.0)


def test_what_a_check_is_comes_with_its_result() -> None:
    result = judged("1.8", evidence(baseline=100.0, cached_input=140.0))
    item = load()["input-bound-training"]
    assert (result.id, result.number, result.section, result.title) == (
        "input-bound-training",
        "1.8",
        "Performance analysis",
        item.title,
    )
    assert (result.threshold, result.looks_at, result.why, result.how_to_fix) == (
        "cached ÷ baseline: lower end of the interval ≥ 1.05× warns, ≥ 1.25× fails",
        item.looks_at,
        item.why,
        item.how_to_fix,
    )


# Answers --------------------------------------------------------------------------------------------


#: A check that needs nothing.
FREE = replace(load()["memory-format"], needs=(), uses=())


def answered(status: Status, said: Said | None) -> CheckResult:
    """A check that finds the status, of which a person said that."""
    judge = {
        Status.PASS: checking.passed,
        Status.WARN: checking.warned,
        Status.FAIL: checking.failed,
        Status.MANUAL: checking.manual,
        Status.UNKNOWN: checking.unknown,
        Status.NOT_APPLICABLE: checking.not_applicable,
    }[status]
    gain = Interval(median=2.0, low=2.0, high=2.0)
    item = replace(FREE, judge=lambda given: judge("Own words.", fix="Do.", gain=gain, seen=1))
    answers = () if said is None else (Answer("memory-format", said, "Hm.", "Ann", date(2026, 1, 31)),)
    (result,) = run_checks(evidence(answers=answers), [item])
    return result


@pytest.mark.parametrize("status", [Status.MANUAL, Status.UNKNOWN])
@pytest.mark.parametrize(
    ("said", "becomes", "words"),
    [
        ("yes", Status.PASS, "yes"),
        ("no", Status.WARN, "no"),
        ("n-a", Status.NOT_APPLICABLE, "not applicable"),
    ],
)
def test_an_answer_decides_what_the_check_leaves_open(
    status: Status, said: Said, becomes: Status, words: str
) -> None:
    """As an answer: no gain that would read as measured, and the check's own words among the facts."""
    result = answered(status, said)
    assert (result.status, result.by_answer, result.contradicted) == (becomes, True, False)
    assert result.summary == f"Answered {words} by Ann on 2026-01-31: Hm."
    assert result.answer == Answer("memory-format", said, "Hm.", "Ann", date(2026, 1, 31))
    assert (result.gain, result.gain_is_bound, result.fix) == (None, False, "Do.")
    assert result.facts == (
        Fact(name="the check itself", value=f"{status.value}: Own words."),
        Fact(name="seen", value=1),
    )


@pytest.mark.parametrize(
    ("status", "said", "contradicted"),
    [
        (Status.PASS, "yes", False),
        (Status.PASS, "no", True),
        (Status.PASS, "n-a", False),
        (Status.WARN, "yes", True),
        (Status.WARN, "no", False),
        (Status.WARN, "n-a", False),
        (Status.FAIL, "yes", True),
        (Status.FAIL, "no", False),
        (Status.FAIL, "n-a", False),
        (Status.NOT_APPLICABLE, "yes", False),
        (Status.NOT_APPLICABLE, "no", False),
        (Status.NOT_APPLICABLE, "n-a", False),
    ],
)
def test_an_answer_overrules_no_check(status: Status, said: Said, contradicted: bool) -> None:
    result, unanswered = answered(status, said), answered(status, None)
    assert result.answer is not None and result.answer.said == said
    assert (result.by_answer, result.contradicted) == (False, contradicted)
    assert msgspec.structs.replace(result, answer=None, contradicted=False) == unanswered


def test_an_answer_mends_no_broken_check() -> None:
    def broken(given: Evidence) -> Any:
        raise ValueError

    item = replace(FREE, judge=broken)
    (result,) = run_checks(evidence(answers=(Answer("memory-format", "yes"),)), [item])
    assert (result.status, result.by_answer, result.contradicted) == (Status.ERROR, False, False)
    assert result.answer is not None


def test_an_answer_counts_when_a_need_is_missing() -> None:
    (result,) = run_checks(
        evidence(answers=(Answer("samples-per-dollar", "n-a"),)), [load()["samples-per-dollar"]]
    )
    assert (result.status, result.by_answer) == (Status.NOT_APPLICABLE, True)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer("x", "yes"), "yes."),
        (Answer("x", "n-a", by="Ann"), "not applicable by Ann."),
        (Answer("x", "no", on=date(2026, 1, 31)), "no on 2026-01-31."),
        (Answer("x", "no", "Not  yet,\nbut soon"), "no: Not yet, but soon"),
    ],
)
def test_an_answer_in_words(answer: Answer, words: str) -> None:
    assert answer.words == words


# Questions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("item", load().values(), ids=by_number)
def test_every_check_asks_one_short_question(item: Check) -> None:
    assert item.question.endswith("?") and "\n" not in item.question
    assert len(item.question) <= 120


def test_a_question_is_said_or_made_of_the_title(registry: dict[str, Check]) -> None:
    def warm_chairs(given: Evidence) -> Any:
        """Chairs"""

    warm_chairs.__module__ = "tfaudit.checks.cpu"
    checking.check(number="9.1", question="Are they warm?")(warm_chairs)

    def warm_tables(given: Evidence) -> Any:
        """Tables"""

    warm_tables.__module__ = "tfaudit.checks.cpu"
    checking.check(number="9.2")(warm_tables)
    asked = [registry[name].question for name in ("warm-chairs", "warm-tables")]
    assert asked == ["Are they warm?", "Tables: is this in order?"]


# Registering ----------------------------------------------------------------------------------------


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, Check]:
    """A copy of the registry that a test may add to."""
    copy = dict(load())
    monkeypatch.setattr(checking, "CHECKS", copy)
    return copy


def test_a_check_is_made_of_its_function(registry: dict[str, Check]) -> None:
    def warm_chairs(given: Evidence) -> Any:
        """Chairs are warm

        What it looks at
        Chairs,
        all of them.

        Why it matters
        Cold ones
        are cold.

        How to fix
        Sit.
        """

    warm_chairs.__module__ = "tfaudit.checks.cpu"
    checking.check(number="9.1", needs=("baseline",), uses=("trace",), threshold="cold fails")(warm_chairs)
    made = registry["warm-chairs"]
    assert (made.id, made.number, made.section) == ("warm-chairs", "9.1", "CPU bottlenecks")
    assert (made.title, made.looks_at) == ("Chairs are warm", "Chairs, all of them.")
    assert (made.why, made.how_to_fix) == ("Cold ones are cold.", "Sit.")
    assert (made.variants, made.threshold) == (("baseline", "profiled"), "cold fails")
    assert made.judge is warm_chairs


def test_a_number_is_given_once(registry: dict[str, Check]) -> None:
    def another(given: Evidence) -> Any: ...

    with pytest.raises(ValueError, match=r"already a check 1\.8"):
        checking.check(number="1.8")(another)


def test_a_name_is_given_once(registry: dict[str, Check]) -> None:
    def xla_effect(given: Evidence) -> Any: ...

    with pytest.raises(ValueError):
        checking.check(number="9.1")(xla_effect)


def test_a_need_that_does_not_exist_is_refused(registry: dict[str, Check]) -> None:
    def another(given: Evidence) -> Any: ...

    with pytest.raises(ValueError, match="'cached-inptu', which is neither a variant nor a fact"):
        checking.check(number="9.1", needs=("cached-inptu",))(another)


# Facts ----------------------------------------------------------------------------------------------

FACT_ROWS: list[tuple[dict[str, Any], list[Fact]]] = [
    ({"blocks": 6}, [Fact(name="blocks", value=6)]),
    ({"first_step_s": 1.5}, [Fact(name="first step", value=1.5, unit="s")]),
    ({"median_step_ms": 1.5}, [Fact(name="median step", value=1.5, unit="ms")]),
    ({"baseline_samples_per_s": 9.0}, [Fact(name="baseline", value=9.0, unit="samples/s")]),
    ({"baseline_samples_per_usd": 9.0}, [Fact(name="baseline", value=9.0, unit="samples/$")]),
    ({"size_bytes": 7}, [Fact(name="size", value=7, unit="bytes")]),
    ({"noise_fraction": 0.1}, [Fact(name="noise", value=0.1, unit="fraction")]),
    ({"xla_over_no_xla_ratio": 2.0}, [Fact(name="xla over no xla", value=2.0, unit="×")]),
    ({"price_per_hour_usd": 1.0}, [Fact(name="price per hour", value=1.0, unit="$")]),
    ({"runs_eagerly": False}, [Fact(name="runs eagerly", value=False)]),
    ({"traces": None}, []),
    ({"op": ["A", "B"]}, [Fact(name="op", value="A"), Fact(name="op", value="B")]),
    ({"op": []}, []),
    ({"traces": {"xla": 2}}, [Fact(name="traces: xla", value=2)]),
    (
        {"gain_ratio": Interval(median=2.0, low=1.5, high=2.5)},
        [Fact(name="gain", value=2.0, unit="×", interval=Interval(median=2.0, low=1.5, high=2.5))],
    ),
]


@pytest.mark.parametrize(("facts", "table"), FACT_ROWS)
def test_facts_are_rows_whose_units_are_read_off_their_names(
    facts: dict[str, Any], table: list[Fact]
) -> None:
    assert list(rows(facts)) == table

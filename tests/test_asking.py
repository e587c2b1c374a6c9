"""What `tfaudit answer` asks; how it is typed is tested with the command line."""

from __future__ import annotations

import getpass
from typing import Any

import pytest
from msgspec.structs import replace
from report.sample import check, report

from tfaudit import asking
from tfaudit.checking import load
from tfaudit.records import Answer, Status
from tfaudit.report.text import Terminal, columns

MANUAL = check("1.1", Status.MANUAL, id="throughput-reported", why="It is what every cost follows from.")
UNKNOWN = check("1.2", Status.UNKNOWN, id="samples-per-dollar")
PASSED = check("1.3", Status.PASS, id="stable-throughput")
STRANGE = check("9.9", Status.MANUAL, id="of-a-later-version")
GIVEN = report(checks=(MANUAL, UNKNOWN, PASSED, STRANGE))


def asked(*names: str, also_unknown: bool = False, answered: tuple[str, ...] = ()) -> list[str]:
    found = asking.items(GIVEN, names=names, also_unknown=also_unknown, answered=answered)
    return [item.number for item in found]


def test_manual_checks_are_asked_about() -> None:
    """But for those that this version does not know."""
    assert asked() == ["1.1"]
    assert asked(also_unknown=True) == ["1.1", "1.2"]


def test_what_is_answered_is_asked_about_only_by_name() -> None:
    assert asked(answered=("throughput-reported",), also_unknown=True) == ["1.2"]
    assert asked("1.3", "throughput-reported", answered=("throughput-reported",)) == ["1.1", "1.3"]


def shown(item: Any, width: int = 60) -> list[str]:
    return list(asking.lines(item, "2 of 3", Terminal(False, width)))


def test_an_item_is_shown_with_all_that_one_must_know() -> None:
    assert shown(MANUAL) == [
        "",
        "2 of 3",
        "✎ manual 1.1 Title of 1.1",
        "         Summary of 1.1.",
        "         Why it matters: It is what every cost follows from.",
        f"         {load()['throughput-reported'].question}",
    ]


def test_a_check_that_says_only_its_question_does_not_ask_twice() -> None:
    item = replace(MANUAL, summary=f"No fit. {load()['throughput-reported'].question}", why="")
    assert len(shown(item, 200)) == 4


def test_what_was_said_before_is_shown() -> None:
    item = replace(MANUAL, status=Status.PASS, answer=Answer(MANUAL.id, "no"), contradicted=True)
    assert "         Contradicted: answered no." in shown(item)


def test_nothing_in_an_item_moves_the_cursor_or_leaves_the_width() -> None:
    hostile = "\033[2J\033]0;x\x07\u202e" + "x" * 3000
    item = replace(MANUAL, title=hostile, summary=hostile, why=hostile)
    lines = shown(item)
    assert all(line.isprintable() and columns(line) <= 60 for line in lines)


def test_only_answers_to_checks_that_there_are_go_into_a_new_file() -> None:
    answers = (Answer("throughput-reported", "yes"), Answer("of-a-later-version", "no"))
    checks = (replace(MANUAL, answer=answers[0]), UNKNOWN, replace(STRANGE, answer=answers[1]))
    assert asking.given(report(checks=checks)) == [answers[0]]


@pytest.mark.parametrize("error", [KeyError, OSError, ImportError])
def test_not_everybody_has_a_login_name(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> str:
        raise error

    monkeypatch.setattr(getpass, "getuser", fail)
    assert asking.login() == ""


def test_nothing_to_ask() -> None:
    assert asking.nothing(report(checks=(PASSED,)), False) == "No check waits for a person's answer."
    assert asking.nothing(GIVEN, True) == "No check waits for a person's answer."

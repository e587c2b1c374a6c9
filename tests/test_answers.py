"""The answers file: what is read of it, the sentence for each mistake, and what is left of it afterwards."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tfaudit import answers
from tfaudit.answers import parse, put, save
from tfaudit.errors import UsageError
from tfaudit.records import Answer

FILE = Path("answers.toml")
HOW = 'write "yes", "no" or "n-a", or a table such as {answer = "yes", note = "…"}.'
NO_CHECK = "give a number such as 1.8 or an id such as input-bound-training; `tfaudit checks` lists them."

HOSTILE = {
    "quotes": 'it\'s "so" \\ \'\'\'x\'\'\' """y"""',
    "lines": 'a\nb\r\nc\td\n"7.2" = "no"\n[x]\n',
    "comment": "# no comment",
    "escapes": "\x1b[31mred\x1b[0m\x07\x00\x7f\x9b",
    "separators": 'a\u2028"7.3" = "no"\x85b\x0cc',
    "astral": "\U0001f9ea 日本語 \u202e",
    "html": "</script><script>alert(1)</script>",
    "braces": '}, {answer = "no"}',
    "long": "x" * 10_000,
}


# Reading --------------------------------------------------------------------------------------------

READ = {
    "a word": ('"7.3" = "yes"', Answer("unused-storage", "yes")),
    "an id": ('unused-storage = "no"', Answer("unused-storage", "no")),
    "a table on one line": (
        '"7.3" = {answer = "n-a", note = "Hm.", by = "Ann", on = 2026-01-31}',
        Answer("unused-storage", "n-a", "Hm.", "Ann", date(2026, 1, 31)),
    ),
    "a table": ('["7.3"]\nanswer = "yes"\nby = "Ann"', Answer("unused-storage", "yes", by="Ann")),
    "comments": ('# a\n\n"7.3" = "yes" # b', Answer("unused-storage", "yes")),
}


@pytest.mark.parametrize("case", READ)
def test_an_answer_is_a_word_or_a_table(case: str) -> None:
    text, answer = READ[case]
    assert parse(text, FILE) == {answer.check: answer}


def test_answers_keep_the_order_of_the_file() -> None:
    assert list(parse('"7.3" = "yes"\n"1.8" = "no"\n', FILE)) == ["unused-storage", "input-bound-training"]


@pytest.mark.parametrize("text", ["", "# nothing yet\n"])
def test_a_file_may_hold_no_answer(text: str) -> None:
    assert parse(text, FILE) == {}


@pytest.mark.parametrize("content", [b'\xef\xbb\xbf"7.3" = "yes"', b'"7.3" = "yes"\r\n'])
def test_files_of_other_editors_are_read(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(content)
    assert answers.read(tmp_path / "a.toml") == (Answer("unused-storage", "yes"),)


MISTAKES = {
    "an unknown number": ('"7.33" = "yes"', f": There is no check '7.33': {NO_CHECK}"),
    "an unknown id": ('storage = "yes"', f": There is no check 'storage': {NO_CHECK}"),
    "no key": ('"" = "yes"', f": There is no check '': {NO_CHECK}"),
    "a number without quotes": (
        '7.3 = "yes"',
        ': 7.3 needs quotes, being a number with a point: write "7.3" = "yes".',
    ),
    "a table whose number has no quotes": (
        '[7.3]\nanswer = "yes"',
        ': 7.3 needs quotes, being a number with a point: write "7.3" = "yes".',
    ),
    "a section": ('7 = {answer = "yes"}', f": There is no check '7': {NO_CHECK}"),
    "an unknown answer": ('"7.3" = "maybe"', f': 7.3 is answered "maybe": {HOW}'),
    "another case": ('"7.3" = "Yes"', f': 7.3 is answered "Yes": {HOW}'),
    "an unknown answer in a table": (
        'unused-storage = {answer = "?"}',
        f': unused-storage is answered "?": {HOW}',
    ),
    "a boolean": ('"7.3" = true', f": 7.3 is answered true: {HOW}"),
    "an integer": ('"7.3" = 1', f": 7.3 is answered without a word: {HOW}"),
    "a hexadecimal of many digits": (f'"7.3" = 0x{"f" * 5000}', f": 7.3 is answered without a word: {HOW}"),
    "a list": ('"7.3" = ["yes"]', f": 7.3 is answered without a word: {HOW}"),
    "a table in a table": ('"7.3" = {answer = {a = 1}}', f": 7.3 is answered without a word: {HOW}"),
    "no answer": ('"7.3" = {note = "Hm."}', f": 7.3 has no answer: {HOW}"),
    "an unknown word": (
        '"7.3" = {answer = "yes", notes = "Hm."}',
        f": 7.3 has 'notes', which is none of answer, note, by, on: {HOW}",
    ),
    "a note that is no text": (
        '"7.3" = {answer = "yes", note = 3}',
        ': The note of 7.3 is no text: write note = "…".',
    ),
    "a name that is no text": (
        '"7.3" = {answer = "yes", by = true}',
        ': The by of 7.3 is no text: write by = "…".',
    ),
    "a day in quotes": (
        '"7.3" = {answer = "yes", on = "2026-01-31"}',
        ": The day of 7.3 is no date: write on = 2026-01-31, without quotes.",
    ),
    "a day with a time": (
        '"7.3" = {answer = "yes", on = 2026-01-31T10:00:00}',
        ": The day of 7.3 is no date: write on = 2026-01-31, without quotes.",
    ),
    "a number and its id": (
        '"7.3" = "yes"\nunused-storage = "no"',
        ": 7.3 and unused-storage are the same check: keep one of them.",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_named_with_what_to_write(case: str) -> None:
    text, sentence = MISTAKES[case]
    with pytest.raises(UsageError) as raised:
        parse(text, FILE)
    assert str(raised.value) == f"answers.toml{sentence}"


NO_TOML = {
    "no TOML": "yes",
    "half a line": '"7.3" =',
    "the same key twice": '"7.3" = "yes"\n"7.3" = "no"',
    "a day that does not exist": '"7.3" = {answer = "yes", on = 2026-02-31}',
    "a control character": "\x00",
    "an integer of many digits": f'"7.3" = {"1" * 5000}',
    "brackets without end": f'"7.3" = {"[" * 5000}',
}


@pytest.mark.parametrize("case", NO_TOML)
def test_what_is_no_toml_gives_one_sentence(case: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(NO_TOML[case], FILE)
    sentence = str(raised.value)
    assert sentence.startswith("answers.toml is not TOML (")
    assert sentence.endswith('): write lines such as "7.3" = "yes".') and "\n" not in sentence


def test_a_file_that_is_no_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b'"7.3" = "\xff"')
    with pytest.raises(UsageError) as raised:
        answers.read(path)
    assert str(raised.value) == f"{path} is not UTF-8 (at byte 9): save it as UTF-8."


@pytest.mark.parametrize(
    ("name", "reason"), [("none.toml", "No such file or directory"), ("", "Is a directory")]
)
def test_a_file_that_cannot_be_read(name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        answers.read(tmp_path / name)
    assert str(raised.value) == f"{tmp_path / name} cannot be read: {reason}."


# Writing --------------------------------------------------------------------------------------------

NO = Answer("unused-storage", "no", "Hm.", "Ann", date(2026, 1, 31))
TABLE = '{answer = "no", note = "Hm.", by = "Ann", on = 2026-01-31}'

WRITTEN = {
    "an empty file": ("", f"unused-storage = {TABLE}\n"),
    "behind others": ('# a\n"7.2" = "no"\n', f'# a\n"7.2" = "no"\nunused-storage = {TABLE}\n'),
    "no newline at the end": ('"7.2" = "no"', f'"7.2" = "no"\nunused-storage = {TABLE}\n'),
    "in place of the number": ('"7.3" = "yes"\n# b\n', f'"7.3" = {TABLE}\n# b\n'),
    "in place of the id": ("unused-storage='yes'\n", f"unused-storage={TABLE}\n"),
    "the comment behind stays": (
        '  "7.3" = {answer = "yes", note = "#1"} # why "so" # b\n',
        f'  "7.3" = {TABLE}  # why "so" # b\n',
    ),
    "its line ends": ('"7.3" = "yes"\r\n"7.2" = "no"\r\n', f'"7.3" = {TABLE}\r\n"7.2" = "no"\r\n'),
    "its line ends in a new line": ('"7.2" = "no"\r\n', f'"7.2" = "no"\r\nunused-storage = {TABLE}\r\n'),
    "before a table, to which it would belong": (
        '"1.8" = "no"\n["7.2"]\nanswer = "no"\n',
        f'"1.8" = "no"\nunused-storage = {TABLE}\n["7.2"]\nanswer = "no"\n',
    ),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_only_the_answers_own_line_is_written(case: str) -> None:
    before, after = WRITTEN[case]
    assert put(before, NO, FILE) == after


@pytest.mark.parametrize(
    "text",
    [
        '["7.3"]\nanswer = "yes"\n',
        '"7.3" = {answer = "yes", note = """a\nb"""}\n',
        '"7.2" = {answer = "yes", note = """\n[a]\n"""}\n',
    ],
)
def test_an_entry_of_several_lines_is_left_to_the_person(text: str) -> None:
    """What was typed is in the sentence, so that it is not lost."""
    with pytest.raises(UsageError) as raised:
        put(text, NO, FILE)
    assert str(raised.value) == (
        "answers.toml was left as it is, since an entry in it takes several lines:"
        f" write unused-storage = {TABLE} into it by hand."
    )


@pytest.mark.parametrize("note", HOSTILE.values(), ids=HOSTILE)
def test_any_note_and_any_name_come_back(note: str) -> None:
    """Beside others, and a second time in place of the first."""
    given = Answer("unused-storage", "yes", note, note)
    text = put('"7.2" = "no"\n', given, FILE)
    assert parse(text, FILE)["unused-storage"] == given
    assert put(text, given, FILE) == text
    assert text.count("\n") == 2


def test_what_cannot_be_written_is_a_question_mark() -> None:
    assert 'note = "a?b"' in put("", Answer("unused-storage", "yes", "a\ud800b"), FILE)


def test_a_new_file_explains_itself_and_holds_the_others(tmp_path: Path) -> None:
    save(tmp_path / "a.toml", NO, [Answer("spot-ready", "yes", "\ud800")])
    assert (tmp_path / "a.toml").read_text() == (
        "# Answers to tfaudit's checks: yes (in order), no, or n-a (not applicable).\n"
        f'spot-ready = {{answer = "yes", note = "?"}}\nunused-storage = {TABLE}\n'
    )


def test_a_file_that_exists_is_given_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('"7.2" = "no"\n')
    save(path, NO, [Answer("spot-ready", "yes")])
    assert path.read_text() == f'"7.2" = "no"\nunused-storage = {TABLE}\n'
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real.toml").touch()
    (tmp_path / "link.toml").symlink_to("real.toml")
    save(tmp_path / "link.toml", NO)
    assert (tmp_path / "link.toml").is_symlink()
    assert (tmp_path / "real.toml").read_text() == f"unused-storage = {TABLE}\n"


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        save(tmp_path / "none" / "a.toml", NO)
    assert str(raised.value) == f"{tmp_path}/none/a.toml cannot be written: No such file or directory."


def test_a_file_with_a_mistake_is_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("no TOML")
    with pytest.raises(UsageError, match="is not TOML"):
        save(path, NO)
    assert path.read_text() == "no TOML"

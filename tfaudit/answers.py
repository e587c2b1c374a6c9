"""The answers file: what people say of checks, as TOML, and how an answer is added to it.

"7.3" = "yes"
hyper-parameter-search = {answer = "no", note = "By hand so far.", by = "Ann", on = 2026-01-31}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import toml

from . import records
from .checking import find
from .errors import UsageError
from .records import Answer, Said

SAID: tuple[Said, ...] = get_args(Said)
KEYS = ("answer", "note", "by", "on")

HOW = 'write "yes", "no" or "n-a", or a table such as {answer = "yes", note = "…"}'
HEADER = "# Answers to tfaudit's checks: yes (in order), no, or n-a (not applicable).\n"


def read(path: Path) -> tuple[Answer, ...]:
    """The answers of a file. Raises `UsageError` with what is wrong, where, and what to write instead."""
    return tuple(parse(text_of(path), path).values())


def text_of(path: Path) -> str:
    """A file's text, its line ends as they are."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (at byte {error.start}): save it as UTF-8.") from None


def parse(text: str, path: Path) -> dict[str, Answer]:
    """The answers in a text by the check's id, in its order; ``path`` is for what is said of mistakes."""
    try:
        entries = toml.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f'{path} is not TOML ({reason}): write lines such as "7.3" = "yes".') from None
    found: dict[str, Answer] = {}
    keys: dict[str, str] = {}
    for key, value in entries.items():
        try:
            answer = _answer(key, value)
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None
        if other := keys.get(answer.check):
            raise UsageError(f"{path}: {other} and {key} are the same check: keep one of them.")
        keys[answer.check], found[answer.check] = key, answer
    return found


def _answer(key: str, value: Any) -> Answer:
    """One entry. Raises `UsageError` without the file's name."""
    if key.isdecimal() and isinstance(value, dict) and (item := next(iter(value), "")).isdecimal():
        number = f"{key}.{item}"  # TOML takes the point of a bare 7.3 for a path
        raise UsageError(f'{number} needs quotes, being a number with a point: write "{number}" = "yes".')
    check = find(key).id
    table = value if isinstance(value, dict) else {"answer": value}
    if strange := [name for name in table if name not in KEYS]:
        raise UsageError(f"{key} has {strange[0]!r}, which is none of {', '.join(KEYS)}: {HOW}.")
    said = table.get("answer")
    if said is None:
        raise UsageError(f"{key} has no answer: {HOW}.")
    if said not in SAID:
        shown = json.dumps(said)[:60] if isinstance(said, (str, bool)) else "without a word"
        raise UsageError(f"{key} is answered {shown}: {HOW}.")
    for name in ("note", "by"):
        if not isinstance(table.get(name, ""), str):
            raise UsageError(f'The {name} of {key} is no text: write {name} = "…".')
    on = table.get("on")
    if on is not None and type(on) is not date:
        raise UsageError(f"The day of {key} is no date: write on = 2026-01-31, without quotes.")
    return Answer(check=check, said=said, note=table.get("note", ""), by=table.get("by", ""), on=on)


def save(path: Path, answer: Answer, others: Iterable[Answer] = ()) -> None:
    """Put an answer into a file in place of the check's earlier one, and leave all else as it is.

    A file that does not exist is made, the ``others`` first. Raises `UsageError` when that cannot be done.
    """
    try:
        if path.exists():
            text = text_of(path)
        else:
            text = HEADER + "".join(f"{other.check} = {_value(other)}\n" for other in map(_clean, others))
        records.save(path.resolve(), put(text, answer, path).encode())
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from None


def put(text: str, answer: Answer, path: Path) -> str:
    """The text with that answer: its line replaced, or added before the first table.

    Lines are edited, not the document, so that comments stay, and what comes out is read back. Raises
    `UsageError` when that is not what was meant, because an entry takes several lines.
    """
    answer = _clean(answer)
    meant = {**parse(text, path), answer.check: answer}
    changed = "".join(_put(re.findall(r"[^\n]*\n|[^\n]+", text), answer))
    try:
        if parse(changed, path) == meant:
            return changed
    except UsageError:
        pass
    line = f"{answer.check} = {_value(answer)}"
    raise UsageError(
        f"{path} was left as it is, since an entry in it takes several lines: write {line} into it by hand."
    )


def _put(lines: list[str], answer: Answer) -> list[str]:
    """The lines with that answer's among them."""
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    names = "|".join(map(re.escape, (answer.check, find(answer.check).number)))
    entry = re.compile(rf"""\s*(["']?)(?:{names})\1\s*=\s*""")
    new = f"{answer.check} = {_value(answer)}{end}"
    for place, line in enumerate(lines):
        if old := entry.match(line):
            replaced = f"{old.group()}{_value(answer)}{_comment(line)}{end}"
            return [*lines[:place], replaced, *lines[place + 1 :]]
        if line.lstrip().startswith("["):  # what follows belongs to this table
            return [*lines[:place], new, *lines[place:]]
    broken_off = bool(lines) and not lines[-1].endswith("\n")
    return [*lines, end * broken_off, new]


def _comment(line: str) -> str:
    """A comment behind an entry: from the first # before which the line is complete TOML."""
    line = line.rstrip("\r\n")
    for place in (match.start() for match in re.finditer("#", line)):
        try:
            toml.decode(line[:place])
        except (msgspec.DecodeError, ValueError):
            continue
        return f"  {line[place:]}"
    return ""


def _value(answer: Answer) -> str:
    """An answer as an inline table."""
    parts = [f"answer = {_quoted(answer.said)}"]
    parts += [f"note = {_quoted(answer.note)}"] if answer.note else []
    parts += [f"by = {_quoted(answer.by)}"] if answer.by else []
    parts += [f"on = {answer.on}"] if answer.on else []
    return f"{{{', '.join(parts)}}}"


def _quoted(text: str) -> str:
    """A TOML string on one line: JSON's, but for the one control character that JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _clean(answer: Answer) -> Answer:
    """The answer with what can be written as UTF-8."""
    note, by = (text.encode(errors="replace").decode() for text in (answer.note, answer.by))
    return msgspec.structs.replace(answer, note=note, by=by)

"""The little markup that documentation and advice are written in, as HTML.

Paragraphs are set apart by blank lines, code stands in backticks, blocks of code are fenced or
indented by four spaces, list items start with ``- ``. Everything else is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import dedent

from markupsafe import Markup, escape

from . import plain

_FENCED = re.compile(r"^```[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_LONGEST = 6_000
_CODE = re.compile(r"(`{1,2})([^`\n]+)\1")


def prose(text: str, *, keep_lines: bool = False) -> Markup:
    """HTML for a text; ``keep_lines`` keeps its line breaks, otherwise lines are joined."""
    return Markup("\n").join(_blocks(plain.head(text, _LONGEST), keep_lines))


def spans(text: str) -> Markup:
    """HTML for a text on one line, with code in backticks."""
    parts, end = [], 0
    text = plain.head(text, _LONGEST)
    for match in _CODE.finditer(text):
        parts += [
            escape(text[end : match.start()]),
            Markup("<code>{}</code>").format(match.group(2)),
        ]
        end = match.end()
    return Markup("").join([*parts, escape(text[end:])])


def _blocks(text: str, keep_lines: bool) -> Iterator[Markup]:
    for place, part in enumerate(_FENCED.split(text)):
        if place % 2:  # what the fence enclosed
            yield _code(part)
            continue
        for block in re.split(r"\n[ \t]*\n", part.strip("\n")):
            if block.strip():
                yield from _block(block, keep_lines)


def _block(block: str, keep_lines: bool) -> Iterator[Markup]:
    """Paragraphs, code and lists that follow each other without a blank line."""
    for kind, lines in _runs(block.split("\n")):
        if kind == "code":
            yield _code("\n".join(lines))
        elif kind == "list":
            items = re.split(r"^- ", "\n".join(lines), flags=re.MULTILINE)[1:]
            yield Markup("<ul>{}</ul>").format(
                Markup("").join(Markup("<li>{}</li>").format(spans(_join(i))) for i in items)
            )
        elif keep_lines:
            yield Markup("<p>{}</p>").format(Markup("<br>").join(spans(line) for line in lines))
        else:
            yield Markup("<p>{}</p>").format(spans(_join("\n".join(lines))))


def _runs(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    run: list[str] = []
    kind = ""
    for line in lines:
        if line.startswith("    "):
            now = "code"
        elif line.startswith("- ") or (kind == "list" and line.startswith(" ")):
            now = "list"
        else:
            now = "text"
        if now != kind and run:
            yield kind, run
            run = []
        kind = now
        run.append(line)
    if run:
        yield kind, run


def _join(text: str) -> str:
    return " ".join(text.split())


def _code(text: str) -> Markup:
    return Markup('<pre class="code" tabindex="0"><code>{}</code></pre>').format(dedent(text).strip("\n"))

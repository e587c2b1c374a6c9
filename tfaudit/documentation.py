"""What the checks and variants are, in words: for the terminal, and as docs/checks.md.

python -m tfaudit.documentation docs/checks.md
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .checking import HEADINGS, Check, load
from .variants import VARIANTS

if TYPE_CHECKING:
    from .report.text import Terminal

#: What a fact that a check names is, for people.
FACTS = {
    "program": "the captured job",
    "source": "the project's source text",
    "trace": "the profiler's trace",
    "price": "the price per hour",
    "machine": "the machine",
}

INTRODUCTION = """\
# The checks, and the variants that they are decided by

What tfaudit asks of a training job; `tfaudit explain 4.2` tells the same of one check. Sections 1 to 7
follow the public checklist, 2.3 to 2.7 and section 8 are our own. A check that cannot decide is `unknown` or
`manual` and says why; a person's answer counts then, given with `tfaudit answer` or in a file for
`--answers`.

This file is made from the checks and variants themselves, by `make docs`.

## The variants

The same job under controlled changes, each in processes of its own. `tfaudit run` picks those that the checks
need, or those named with `--variant`.
"""

_LABELS = 19
_LONGEST = 10_000


def explained(item: Check, terminal: Terminal) -> Iterator[str]:
    """All that there is to know of a check, as lines for a terminal."""
    yield from terminal.wrapped(f"{item.number} {item.title}", bold=True)
    yield from terminal.wrapped(f"{item.section} · {item.id}")
    needs = (("Needs", listed(item.needs)), ("Uses, if there", listed(item.uses)))
    for label, text in (*_parts(item), *needs):
        lead = f"{label:<{_LABELS}}"
        for line in terminal.wrapped(text.replace("`", ""), _LABELS, limit=_LONGEST) if text else ():
            yield terminal.style(lead, dim=True) + line[_LABELS:]
            lead = " " * _LABELS


def _parts(item: Check) -> list[tuple[str, str]]:
    """What a check says of itself, by heading; empty where it says nothing."""
    headings = [(heading, getattr(item, field)) for heading, field in HEADINGS.items()]
    return [("Question", item.question), *headings, ("Threshold", item.threshold)]


def listed(names: tuple[str, ...]) -> str:
    """``the variants baseline, xla; the captured job``."""
    variants = [name for name in names if name in VARIANTS]
    facts = [FACTS.get(name, name) for name in names if name not in VARIANTS]
    kind = "the variant" if len(variants) == 1 else "the variants"
    groups = (f"{kind} {', '.join(variants)}" if variants else "", ", ".join(facts))
    return "; ".join(filter(None, groups))


def markdown() -> str:
    """The whole of docs/checks.md."""
    return "\n".join([INTRODUCTION, *_variants(), "", *_sections()])


def _variants() -> Iterator[str]:
    for variant in VARIANTS.values():
        text = f"{variant.title}. {' '.join(variant.description.split())}".replace("``", "`").strip()
        only = " Unless named, where there is an accelerator only." if variant.for_accelerators else ""
        yield f"- `{variant.id}`: {_escaped(text)}{only}"


def _sections() -> Iterator[str]:
    section = ""
    for item in load().values():
        if item.section != section:
            section = item.section
            yield f"## {item.number.partition('.')[0]} {_escaped(section)}\n"
        yield f"### {item.number} {_escaped(item.title)}\n"
        yield f"- **Id:** `{item.id}`"
        yield f"- **Decided by:** {_decided_by(item)}"
        for label, text in _parts(item):
            if text:
                yield f"- **{label}:** {_escaped(text)}"
        yield ""


def _decided_by(item: Check) -> str:
    return listed(tuple(dict.fromkeys((*item.needs, *item.uses)))) or "a person's answer"


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is, but for code in backticks."""
    return "".join(
        part if part.startswith("`") else re.sub(r"[\\*_<\[]", r"\\\g<0>", part)
        for part in re.split("(`[^`]+`)", text)
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(markdown(), encoding="utf-8")

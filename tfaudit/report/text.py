"""The report for a terminal: aligned columns, and nothing in them that a terminal obeys."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence

import click

from ..records import CheckResult, Report, Status, VariantSummary
from . import numbers, plain, reading

COLOURS: dict[Status | None, str] = {
    Status.FAIL: "red",
    Status.WARN: "yellow",
    Status.ERROR: "magenta",
    Status.PASS: "green",
    Status.MANUAL: "blue",
}
_LEAST_WIDTH = 48  # what the table of variants needs without its intervals
INDENT = 9
_NAMES = 22
_MOST_LINES, _LONGEST_LINE, _LONGEST_CODE = 12, 600, 160


def render(report: Report, *, color: bool = False, width: int = 80) -> str:
    """The whole summary, at most ``width`` columns wide where words allow it."""
    return "\n".join(Terminal(color, max(width, _LEAST_WIDTH)).lines(report)) + "\n"


class Terminal:
    """How wide the lines are and whether they are coloured."""

    def __init__(self, color: bool, width: int) -> None:
        self.color, self.width = color, width

    def lines(self, report: Report) -> Iterator[str]:
        """The parts of the summary, set apart by empty lines."""
        yield from self.wrapped(report.headline or "No headline.", bold=True)
        if not report.complete:
            note = "Incomplete run: this holds what was measured until the audit was stopped."
            yield from self.wrapped(note, fg="yellow")
        yield ""
        yield from self.figures(report)
        yield ""
        yield from self.variants(report)
        yield ""
        yield from self.findings(report)
        yield from self.answers(report)
        yield from self.counts(report)

    def style(self, text: str, *, fg: str | None = None, bold: bool = False, dim: bool = False) -> str:
        """Coloured only where colour is wanted."""
        if not self.color or not (fg or bold or dim):
            return text
        return click.style(text, fg=fg, bold=bold or None, dim=dim or None)

    def wrapped(
        self,
        text: str,
        indent: int = 0,
        *,
        fg: str | None = None,
        bold: bool = False,
        dim: bool = False,
        limit: int = 600,
    ) -> Iterator[str]:
        """One paragraph, filled to the width."""
        for line in fill(plain.one_line(text, limit), self.width - indent):
            yield " " * indent + self.style(line, fg=fg, bold=bold, dim=dim)

    def figures(self, report: Report) -> Iterator[str]:
        """The numbers at the top."""
        for figure in reading.key_figures(report):
            lead = f"{figure.name:<{_NAMES}}"
            for line in self.wrapped(str(figure.value), _NAMES, bold=True):
                yield lead + line[_NAMES:]
                lead = " " * _NAMES
            note = figure.note.replace("`", "")
            yield from self.wrapped(note, _NAMES, dim=True, limit=200)

    def variants(self, report: Report) -> Iterator[str]:
        """Rate, step and ratio of every variant, or why there is none."""
        if not report.variants:
            yield "No variant was run."
            return
        rows = [
            ("variant", "samples/s", "step", "× baseline"),
            *map(self.row(report), report.variants),
        ]
        if sum(max(map(columns, column)) + 2 for column in zip(*rows, strict=True)) > self.width + 2:
            rows = [(name, *(cell.partition(" (")[0] for cell in cells)) for name, *cells in rows]
        reasons = {
            place: f"{reading.state(variant)}: {reading.why_unmeasured(variant)}"
            for place, variant in enumerate(report.variants, start=1)
            if variant.samples_per_s is None
        }
        yield from self.table(rows, reasons)

    def row(self, report: Report) -> Callable[[VariantSummary], tuple[str, ...]]:
        """How a variant becomes a row of the table."""

        def cells(variant: VariantSummary) -> tuple[str, ...]:
            name = plain.one_line(variant.id, 24)
            if variant.samples_per_s is None:
                return (name, "", "", "")
            compared = reading.against_baseline(report, variant.id)
            own = "reference" if variant.id == reading.BASELINE else numbers.MISSING
            return (
                name,
                str(numbers.rate(variant.samples_per_s)),
                numbers.milliseconds(variant.step_ms).median,
                str(numbers.ratio(compared.ratio)) if compared else own,
            )

        return cells

    def table(self, rows: Sequence[tuple[str, ...]], reasons: dict[int, str]) -> Iterator[str]:
        """Columns as wide as their widest cell, the first to the left, numbers to the right."""
        widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
        for place, row in enumerate(rows):
            first = row[0] + " " * (widths[0] - columns(row[0]))
            if place in reasons:
                reason = fill(plain.one_line(reasons[place], 300), self.width - widths[0] - 2)
                yield f"{first}  {self.style(reason[0], dim=True)}"
                yield from (" " * (widths[0] + 2) + self.style(r, dim=True) for r in reason[1:])
                continue
            cells = [" " * (w - columns(c)) + c for c, w in zip(row[1:], widths[1:], strict=True)]
            line = "  ".join([first, *cells]).rstrip()
            yield self.style(line, dim=place == 0)

    def findings(self, report: Report) -> Iterator[str]:
        """What failed or warned with its fix, and which checks broke."""
        found = reading.findings(report)
        if not found:
            yield "No check failed or warned."
            yield ""
        for check in found:
            gain = f" · {reading.gain(check)}" if check.gain else ""
            yield from self.check(check, gain)
            yield from self.said(check)
            yield from self.fix(check)
            yield ""
        for check in reading.errors(report):
            yield from self.check(check, "")
            yield ""

    def check(self, check: CheckResult, gain: str) -> Iterator[str]:
        """Status, number and title on the first line, what was seen below it."""
        look = reading.LOOKS[check.status]
        status = f"{look.glyph} {look.word:<{INDENT - 3}} "
        title = fill(plain.one_line(f"{check.number} {check.title}", 160) + gain, self.width - len(status))
        yield self.style(status, fg=COLOURS.get(check.status)) + self.style(title[0], bold=True)
        yield from (" " * INDENT + self.style(line, bold=True) for line in title[1:])
        yield from self.wrapped(check.summary.replace("`", ""), INDENT, limit=400)

    def said(self, check: CheckResult) -> Iterator[str]:
        """What a person said of a check that decided by itself."""
        if said := reading.said(check):
            yield from self.wrapped(said, INDENT, fg="yellow" if check.contradicted else None, limit=400)

    def answers(self, report: Report) -> Iterator[str]:
        """What people said of checks that are no findings."""
        for check in reading.answered(report):
            yield from self.check(check, "")
            yield from self.said(check)
        if reading.answered(report):
            yield ""

    def fix(self, check: CheckResult) -> Iterator[str]:
        """Advice for this program with its lines kept, since they may be code to copy."""
        lead = "fix: "
        for line in advice(check):
            # Code is not wrapped: half a line cannot be pasted.
            whole = line.startswith("    ") and len(line) < _LONGEST_CODE
            for part in [line] if whole else fill(line, self.width - INDENT - len(lead)):
                yield " " * INDENT + self.style(lead, dim=True) + part
                lead = " " * len(lead)

    def counts(self, report: Report) -> Iterator[str]:
        """How many checks have each status."""
        found = {
            f"{reading.LOOKS[status].glyph}\u00a0{count}\u00a0{reading.LOOKS[status].word}": status
            for status, count in reading.counts(report)
            if count
        }
        for place, line in enumerate(fill(" · ".join(found) or "none", self.width - INDENT)):
            parts = [
                self.style(part.replace("\u00a0", " "), fg=COLOURS.get(found.get(part)))
                for part in line.split(" ")
            ]
            yield f"{'' if place else 'Checks:':<{INDENT}}{' '.join(parts)}"
        if manual := reading.manual(report):
            yield from self.wrapped(f"Waiting for a person's answer: {manual}. tfaudit answer FOLDER asks.")
        left_out = [item for item in report.program.callbacks if not item.kept] if report.program else []
        if left_out:
            names = "; ".join(f"{item.name} ({item.reason})" for item in left_out)
            yield from self.wrapped(f"Callbacks left out of every variant: {names}.")
        for note in report.notes:
            yield from self.wrapped(note, dim=True)


def advice(check: CheckResult) -> list[str]:
    """The lines of the fix for this program, or the beginning of the general one."""
    if not check.fix:
        first = plain.plain(check.how_to_fix).strip().partition("\n\n")[0]
        return [plain.one_line(first.replace("`", "").rstrip(":"), 300)] if first else []
    lines = [line.rstrip() for line in reading.advice(check.fix).split("\n")]
    shown = [line[:_LONGEST_LINE] for line in lines if line]
    return shown if len(shown) <= _MOST_LINES else [*shown[:_MOST_LINES], "…"]


def columns(text: str) -> int:
    """How many columns a text takes: East Asian wide characters two, combining ones none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def fill(text: str, width: int) -> list[str]:
    """The words of a text on lines of that many columns; a word longer than a line is broken."""
    lines, line, used = [], "", 0
    for word in filter(None, text.split(" ")):
        while columns(word) > width:
            if line:
                lines.append(line)
                line, used = "", 0
            cut = max(width // 2, 1)  # half, because each character may take two columns
            lines.append(word[:cut])
            word = word[cut:]
        wide = columns(word)
        if line and used + 1 + wide > width:
            lines.append(line)
            line, used = "", 0
        line, used = (f"{line} {word}", used + 1 + wide) if line else (word, wide)
    return [*lines, line] if line or not lines else lines

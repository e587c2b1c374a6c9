"""How every renderer reads a report: what is a finding, in which order, in which words."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..records import CheckResult, Comparison, Interval, Report, Status, VariantSummary
from . import numbers, plain

BASELINE = "baseline"
CEILING = "cached-input"
INPUT_ONLY = "input-only"
_SENTENCE = re.compile(r"\W*[A-Z].*[.:!?]$")
NO_PRICE = "no price was given; add one in USD per hour, for instance `--price 1.006`"


class Look(NamedTuple):
    """How a status is told without colour: a word and a character of its own."""

    word: str
    glyph: str


# In the order in which a reader wants to know.
LOOKS: dict[Status, Look] = {
    Status.FAIL: Look("fail", "✗"),
    Status.WARN: Look("warn", "▲"),
    Status.ERROR: Look("error", "◆"),
    Status.PASS: Look("pass", "✓"),
    Status.MANUAL: Look("manual", "✎"),
    Status.UNKNOWN: Look("unknown", "?"),
    Status.NOT_APPLICABLE: Look("not applicable", "–"),
}


#: What is to be changed.
FINDINGS = (Status.FAIL, Status.WARN)


class Section(NamedTuple):
    """One section of the checklist."""

    number: str
    title: str
    checks: list[CheckResult]

    def counts(self) -> list[tuple[Status, int]]:
        """How many checks of the section have each status, those without any left out."""
        statuses = [check.status for check in self.checks]
        return [(status, statuses.count(status)) for status in LOOKS if status in statuses]


def by_number(check: CheckResult) -> tuple[tuple[int, ...], str]:
    """A sort key that puts 1.10 after 1.9."""
    return tuple(int(part[:9]) for part in re.findall("[0-9]+", check.number)), check.id


def sections(report: Report) -> list[Section]:
    """The checklist by section, in the checklist's order."""
    found: dict[str, Section] = {}
    for check in sorted(report.checks, key=by_number):
        number = check.number.partition(".")[0]
        found.setdefault(check.section, Section(number, check.section, [])).checks.append(check)
    return list(found.values())


def findings(report: Report) -> list[CheckResult]:
    """What to change: failed checks before warnings, each by gain, those without one last."""

    def urgency(check: CheckResult) -> tuple[bool, float, tuple[tuple[int, ...], str]]:
        gain = check.gain.median if check.gain else 0.0
        return check.status is not Status.FAIL, -gain, by_number(check)

    return sorted(
        (check for check in report.checks if check.status in FINDINGS),
        key=urgency,
    )


def errors(report: Report) -> list[CheckResult]:
    """Checks that broke: not a verdict on the job, but nothing to keep quiet about either."""
    return sorted((c for c in report.checks if c.status is Status.ERROR), key=by_number)


def counts(report: Report) -> list[tuple[Status, int]]:
    """The number of checks by status, all seven."""
    return [(status, report.counts.get(status.value, 0)) for status in LOOKS]


def answered(report: Report) -> list[CheckResult]:
    """The checks of which a person said something and that are no finding; those contradicted first."""
    found = [check for check in report.checks if check.answer and check.status not in FINDINGS]
    return sorted(found, key=lambda check: (not check.contradicted, by_number(check)))


def said(check: CheckResult) -> str:
    """What a person said of a check that decided by itself; an answer that decided is its summary."""
    if check.answer is None or check.by_answer:
        return ""
    return f"{'Contradicted: answered' if check.contradicted else 'Answered'} {check.answer.words}"


def manual(report: Report) -> int:
    """How many checks wait for a person's answer."""
    return sum(check.status is Status.MANUAL for check in report.checks)


def variant(report: Report, name: str) -> VariantSummary | None:
    """The variant of that name, where the run has it."""
    return next((v for v in report.variants if v.id == name), None)


def against_baseline(report: Report, name: str) -> Comparison | None:
    """The comparison of a variant with the job as it is."""
    return next((c for c in report.comparisons if c.variant == name and c.reference == BASELINE), None)


def unmeasured(report: Report) -> list[VariantSummary]:
    """The variants that give no rate."""
    return [v for v in report.variants if v.samples_per_s is None]


def why_unmeasured(summary: VariantSummary | None) -> str:
    """One sentence for the place where a number would be."""
    if summary is None:
        return "this run did not include it"
    if summary.failure is not None:
        return summary.failure.message or f"{summary.failure.kind} in {summary.failure.phase}"
    return summary.title if summary.status == "measured" else "no reason was recorded"


def state(summary: VariantSummary) -> str:
    """``measured``, ``failed``, ``not run``, ``not timed`` for those that log, trace or weigh.

    Or ``not applicable``, where the failure only says that the change makes no sense for this job.
    """
    if summary.failure is not None and summary.failure.is_inapplicable:
        return "not applicable"
    if summary.status == "measured" and summary.purpose != "time":
        return "not timed"
    return summary.status.replace("-", " ")


def gain(check: CheckResult) -> str:
    """``1.32× (1.28–1.36)``, with "at most" before what only bounds the change; empty without a gain."""
    if check.gain is None:
        return ""
    return f"{'at most ' if check.gain_is_bound else ''}{numbers.ratio(check.gain)}"


def advice(text: str) -> str:
    """A fix with its code indented by four spaces.

    Where the text has no markup of its own, a line that is no sentence is code.
    """
    text = plain.plain(text).strip("\n").expandtabs(4)
    if "`" in text or re.search("^    ", text, re.MULTILINE):
        return text
    lines = text.split("\n")
    return "\n".join(line if not line or _SENTENCE.match(line) else f"    {line}" for line in lines)


class Figure(NamedTuple):
    """One of the numbers at the top: ``note`` says what it rests on, or why it is missing."""

    name: str
    value: numbers.Written
    note: str


def key_figures(report: Report) -> list[Figure]:
    """Rate, price and distance to the ceiling of the job as it is."""
    baseline, ceiling = variant(report, BASELINE), variant(report, CEILING)
    rate = baseline.samples_per_s if baseline else None
    per_usd = baseline.samples_per_usd if baseline else None
    absent = why_unmeasured(baseline)
    if report.usd_per_hour is not None:
        price = f"at {report.usd_per_hour:,.4g} USD per hour"
    return [
        Figure("Samples per second", numbers.rate(rate), "the job as it is" if rate else absent),
        Figure(
            "Samples per dollar",
            numbers.rate(per_usd),
            NO_PRICE if report.usd_per_hour is None else price if per_usd else absent,
        ),
        _ceiling(report, rate, ceiling),
        Figure(
            "Time per step",
            numbers.milliseconds(baseline.step_ms if baseline else None),
            _batch(baseline) if baseline and baseline.step_ms else absent,
        ),
    ]


def _ceiling(report: Report, rate: Interval | None, ceiling: VariantSummary | None) -> Figure:
    name = "Share of the ceiling"
    if rate is None:
        return Figure(name, numbers.share(None), why_unmeasured(variant(report, BASELINE)))
    if ceiling is None or ceiling.samples_per_s is None:
        return Figure(name, numbers.share(None), f"{CEILING}: {why_unmeasured(ceiling)}")
    compared = against_baseline(report, CEILING)
    reached = numbers.share(compared.ratio if compared else None)
    return Figure(name, reached, f"{numbers.rate(ceiling.samples_per_s)} samples/s on cached input")


def _batch(summary: VariantSummary) -> str:
    if summary.batch_size is None:
        return f"median of {summary.steps:,} steps"
    return f"{numbers.count(summary.batch_size)} samples on average, median of {summary.steps:,} steps"

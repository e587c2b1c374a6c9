"""What a check is, and how checks are run.

A check is one function in its section's file under `tfaudit.checks`. Its id is its name, its section
the module's title, its documentation the docstring: a title, then the headings "What it looks at",
"Why it matters" and "How to fix".
"""

from __future__ import annotations

import importlib
import inspect
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from .errors import UsageError
from .evidence import FACTS, Evidence
from .records import Answer, CheckResult, Fact, Interval, Record, Said, Status
from .variants import VARIANTS

HEADINGS = {
    "What it looks at": "looks_at",
    "Why it matters": "why",
    "How to fix": "how_to_fix",
}


class Outcome(Record, frozen=True):
    """What a check found; ``gain`` and ``gain_is_bound`` as in `tfaudit.records.CheckResult`."""

    status: Status
    summary: str
    facts: tuple[Fact, ...] = ()
    fix: str = ""
    gain: Interval | None = None
    gain_is_bound: bool = False
    detail: str = ""


def _outcome(status: Status) -> Callable[..., Outcome]:
    def make(
        summary: str,
        *,
        fix: str = "",
        gain: Interval | None = None,
        at_most: Interval | None = None,
        **facts: Any,
    ) -> Outcome:
        return Outcome(
            status=status,
            summary=summary,
            facts=rows(facts),
            fix=fix,
            gain=gain or at_most,
            gain_is_bound=at_most is not None,
        )

    return make


passed = _outcome(Status.PASS)
warned = _outcome(Status.WARN)
failed = _outcome(Status.FAIL)
not_applicable = _outcome(Status.NOT_APPLICABLE)
unknown = _outcome(Status.UNKNOWN)
manual = _outcome(Status.MANUAL)


def percent(fraction: float) -> str:
    """``54 %``; one decimal below ten."""
    return f"{100 * fraction:.{0 if abs(fraction) >= 0.0995 else 1}f} %"


#: Outcomes that leave the question open, so that a person's answer decides; and what it then amounts to.
OPEN = (Status.MANUAL, Status.UNKNOWN)
AMOUNTS_TO: dict[Said, Status] = {
    "yes": Status.PASS,
    "no": Status.WARN,
    "n-a": Status.NOT_APPLICABLE,
}

#: Answers that say the opposite of what a check found.
CONTRADICTIONS = (("yes", Status.WARN), ("yes", Status.FAIL), ("no", Status.PASS))

#: Suffixes of a fact's name that say its unit, as in the records.
UNITS = {
    "_samples_per_s": "samples/s",
    "_samples_per_usd": "samples/$",
    "_ms": "ms",
    "_s": "s",
    "_bytes": "bytes",
    "_fraction": "fraction",
    "_ratio": "×",
    "_usd": "$",
}


def rows(facts: dict[str, Any]) -> tuple[Fact, ...]:
    """Keyword facts as table rows: the unit is read off the name, a list or dict gives several rows."""
    table: list[Fact] = []
    for name, value in facts.items():
        suffix = next((suffix for suffix in UNITS if name.endswith(suffix)), "")
        label = name.removesuffix(suffix).replace("_", " ").strip() or name
        unit = UNITS.get(suffix, "")
        if isinstance(value, Interval):
            table.append(Fact(name=label, value=value.median, unit=unit, interval=value))
        elif isinstance(value, (list, tuple)):
            table += [Fact(name=label, value=str(item)) for item in value]
        elif isinstance(value, dict):
            table += [Fact(name=f"{label}: {key}", value=item) for key, item in value.items()]
        elif value is not None:
            table.append(Fact(name=label, value=value, unit=unit))
    return tuple(table)


@dataclass(frozen=True)
class Check:
    """A registered check."""

    id: str
    number: str
    section: str
    title: str
    question: str
    needs: tuple[str, ...]
    uses: tuple[str, ...]
    threshold: str
    looks_at: str
    why: str
    how_to_fix: str
    judge: Callable[[Evidence], Outcome]

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants that must run for this check."""
        wanted = (*self.needs, *self.uses)
        traced = ("profiled",) if "trace" in wanted else ()
        return tuple(name for name in wanted if name in VARIANTS) + traced


CHECKS: dict[str, Check] = {}


def check(
    *,
    number: str,
    needs: Iterable[str] = (),
    uses: Iterable[str] = (),
    threshold: str = "",
    question: str = "",
) -> Callable[[Callable[[Evidence], Outcome]], Callable[[Evidence], Outcome]]:
    """Register a function as the check of that number.

    ``needs`` names the variants and facts without which it cannot answer, ``uses`` those that sharpen
    its answer; it is handed nothing else. ``threshold`` is its rule in words, printed beside the verdict.
    ``question`` is what a person is asked where it cannot tell: one to which yes says that all is well.
    """

    def register(judge: Callable[[Evidence], Outcome]) -> Callable[[Evidence], Outcome]:
        CHECKS[_identifier(judge.__name__)] = _made(
            judge.__name__,
            judge.__doc__ or "",
            judge.__module__,
            judge,
            number=number,
            needs=tuple(needs),
            uses=tuple(uses),
            threshold=threshold,
            question=question,
        )
        return judge

    return register


def _made(
    name: str,
    documentation: str,
    module: str,
    judge: Callable[[Evidence], Outcome],
    *,
    number: str,
    needs: tuple[str, ...] = (),
    uses: tuple[str, ...] = (),
    threshold: str = "",
    question: str = "",
) -> Check:
    if strange := [need for need in needs + uses if need not in VARIANTS and need not in FACTS]:
        raise ValueError(f"{name} needs {strange[0]!r}, which is neither a variant nor a fact")
    if _identifier(name) in CHECKS or number in {other.number for other in CHECKS.values()}:
        raise ValueError(f"there is already a check {number} or {name}")
    title, parts = _documentation(documentation)
    return Check(
        id=_identifier(name),
        number=number,
        section=_section(module),
        title=title,
        question=question or f"{title}: is this in order?",
        needs=needs,
        uses=uses,
        threshold=threshold,
        judge=judge,
        **{heading: parts.get(heading, "") for heading in HEADINGS.values()},
    )


def _identifier(name: str) -> str:
    return name.replace("_", "-")


def _section(module: str) -> str:
    """The first line of the section file's docstring."""
    documentation = importlib.import_module(module).__doc__ or ""
    return documentation.strip().partition("\n")[0].rstrip(".")


def _documentation(text: str) -> tuple[str, dict[str, str]]:
    """A docstring's title, and its paragraphs under each of the three headings."""
    lines = inspect.cleandoc(text).splitlines()
    title, parts, current = lines[0] if lines else "", {}, ""
    for line in lines[1:]:
        if line.strip() in HEADINGS:
            current = HEADINGS[line.strip()]
            parts[current] = ""
        elif current:
            parts[current] = f"{parts[current]} {line.strip()}".strip()
    return title, parts


def load() -> dict[str, Check]:
    """All checks by id, in the order of the checklist."""
    importlib.import_module("tfaudit.checks")
    return dict(sorted(CHECKS.items(), key=lambda item: _position(item[1].number)))


def _position(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in number.split("."))


def choose(wanted: Iterable[str]) -> dict[str, Check]:
    """The checks named by id or number; all of them when none is named.

    Raises `UsageError` for a name that is neither.
    """
    checks = load()
    chosen = {find(name).id for name in wanted}
    return {key: item for key, item in checks.items() if key in chosen or not chosen}


def find(name: str) -> Check:
    """The check with that id or number. Raises `UsageError` when there is none."""
    for item in load().values():
        if name in (item.id, item.number):
            return item
    raise UsageError(
        f"There is no check {name!r}: give a number such as 1.8 or an id such as input-bound-training;"
        " `tfaudit checks` lists them."
    )


def run_checks(evidence: Evidence, checks: Iterable[Check]) -> tuple[CheckResult, ...]:
    """Judge the evidence; one check that raises stops no other."""
    answers = {answer.check: answer for answer in evidence.answers}
    return tuple(_answered(_result(item, _judge(item, evidence)), answers.get(item.id)) for item in checks)


def _answered(result: CheckResult, answer: Answer | None) -> CheckResult:
    """A result with what a person said: it decides what the check left open, and overrules nothing."""
    if answer is None:
        return result
    if result.status not in OPEN:
        contradicted = (answer.said, result.status) in CONTRADICTIONS
        return replace(result, answer=answer, contradicted=contradicted)
    own = Fact(name="the check itself", value=f"{result.status.value}: {result.summary}")
    return replace(
        result,
        status=AMOUNTS_TO[answer.said],
        summary=f"Answered {answer.words}",
        facts=(own, *result.facts),
        gain=None,
        gain_is_bound=False,
        answer=answer,
        by_answer=True,
    )


def _judge(item: Check, evidence: Evidence) -> Outcome:
    for need in item.needs:
        if reason := evidence.why_missing(need):
            return unknown(reason)
    try:
        return item.judge(evidence.only(item.needs + item.uses))
    except Exception as error:
        return Outcome(
            status=Status.ERROR,
            summary=f"The check itself failed: {error!r}.",
            detail=traceback.format_exc(),
        )


def _result(item: Check, outcome: Outcome) -> CheckResult:
    return CheckResult(
        id=item.id,
        number=item.number,
        section=item.section,
        title=item.title,
        status=outcome.status,
        summary=outcome.summary,
        facts=outcome.facts,
        threshold=item.threshold,
        fix=outcome.fix,
        gain=outcome.gain,
        gain_is_bound=outcome.gain_is_bound,
        detail=outcome.detail,
        looks_at=item.looks_at,
        why=item.why,
        how_to_fix=item.how_to_fix,
        question=item.question,
    )

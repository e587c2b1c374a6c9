"""The report as one HTML file that needs neither network nor JavaScript."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from functools import cache

import msgspec
from jinja2 import Environment
from markupsafe import Markup

from ..records import CheckResult, Program, Report, Stage, VariantSummary
from ..trace import verdicts
from ..trace.summary import TraceEvidence
from . import charts, numbers, plain, prose, reading, templates, trace_charts, trace_words

# What could end a script element, open a comment in it or upset a reader of its source.
_UNSAFE_IN_SCRIPT = re.compile("[<>&\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def render(report: Report) -> str:
    """The whole page."""
    return _page(report, "report.html")


def render_trace(report: Report) -> str:
    """The page of a trace that no run belongs to."""
    return _page(report, "trace.html")


def typeset(text: str) -> str:
    """Text for the page: cleaned, and a number never parted from its per cent sign by a line's end."""
    return re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", plain.head(text))


def _page(report: Report, template: str) -> str:
    environment = _environment()
    script = _source(environment, "report.js")
    return environment.get_template(template).render(
        report=report,
        style=Markup(_source(environment, "style.css")),
        script=Markup(script),
        policy=_policy(script),
        document=embedded(report),
        title=plain.one_line(report.target.path or "training job", 80),
        created=_moment(report.created_at),
        anchor=anchors(report.checks),
        charts=_charts(report),
        program=report.program or Program(form=""),
        phases=phase_names(report.variants),
    )


def _charts(report: Report) -> dict[str, list[Markup]]:
    """Each chart in both layouts; an empty list where there is nothing to draw."""
    both = (charts.WIDE, charts.NARROW)
    drawn: dict[str, list[str | None]] = {
        "variants": [charts.variants(report, layout) for layout in both],
        "comparisons": [charts.comparisons(report, layout) for layout in both],
    }
    trace = report.trace or TraceEvidence()
    steps = trace.summary.steps if trace.summary else ()
    for layout in (trace_charts.WIDE, trace_charts.NARROW):
        line = trace_charts.timeline(trace.timeline, layout) if trace.timeline else None
        drawn.setdefault("timeline", []).append(line)
        drawn.setdefault("steps", []).append(trace_charts.steps(steps, layout))
    return {name: [Markup(svg) for svg in images if svg] for name, images in drawn.items()}


@cache
def _environment() -> Environment:
    environment = templates.environment(autoescape=True, write=typeset)
    environment.globals.update(reading=reading, numbers=numbers, MISSING=numbers.MISSING)
    environment.globals.update(words=trace_words, verdicts=verdicts, works=trace_charts.work_of)
    environment.globals.update(Part=verdicts.Part, meanings=verdicts.MEANINGS)
    environment.globals.update(calls=parallel_calls, buffer=buffer_size)
    environment.filters.update(
        advice=reading.advice, prose=prose.prose, spans=prose.spans, one_line=plain.one_line, tail=plain.tail
    )
    return environment


def _source(environment: Environment, name: str) -> str:
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _policy(script: str) -> str:
    """What the page may load and run: its own style, its one script, and nothing from anywhere."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def embedded(report: Report) -> Markup:
    """The document as JSON that is safe inside a script element and decodes to the same."""
    text = msgspec.json.encode(report).decode()
    return Markup(_UNSAFE_IN_SCRIPT.sub(lambda match: f"\\u{ord(match.group()):04x}", text))


def anchors(checks: Iterable[CheckResult]) -> Callable[[CheckResult], str]:
    """A unique HTML id for each check object: the checks' own ids may repeat."""
    taken: dict[str, int] = {}
    found = {}
    for check in checks:
        name = "check-" + re.sub("[^a-z0-9]+", "-", check.id.lower()).strip("-")[:60]
        taken[name] = taken.get(name, 0) + 1
        found[id(check)] = name if taken[name] == 1 else f"{name}--{taken[name]}"
    return lambda check: found[id(check)]


def _moment(text: str) -> str:
    """A time to the minute in UTC; what is no time is shown as it is."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return text or numbers.MISSING
    if moment.tzinfo is None:
        return f"{moment:%Y-%m-%d %H:%M}"
    return f"{moment.astimezone(timezone.utc):%Y-%m-%d %H:%M} UTC"


def phase_names(variants: Iterable[VariantSummary]) -> list[str]:
    """All phases in the order in which they were first seen."""
    return list(dict.fromkeys(phase.name for variant in variants for phase in variant.phases))


def parallel_calls(stage: Stage) -> str:
    """How many calls a stage makes at a time; empty where the question does not arise."""
    if stage.num_parallel_calls is None:
        calls_functions = stage.function or re.search("map|interleave", stage.op, re.IGNORECASE)
        return "serial" if calls_functions else ""
    return "AUTOTUNE" if stage.num_parallel_calls == -1 else numbers.number(stage.num_parallel_calls)


def buffer_size(stage: Stage) -> str:
    """How many elements a stage holds."""
    if stage.buffer_size is None:
        return ""
    return "AUTOTUNE" if stage.buffer_size == -1 else numbers.number(stage.buffer_size)

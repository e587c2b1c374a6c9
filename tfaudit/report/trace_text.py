"""A trace for a terminal: devices, steps, ops, health, and XProf's verdict beside ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..records import CheckResult
from ..trace.summary import Device, Step, TraceSummary, XprofVerdict
from ..trace.verdicts import Part, busiest, classify, differences, headline, split, steps_of, used
from . import plain, reading
from . import trace_words as words
from .text import COLOURS, Terminal

_NAMES, _STATUS = 12, 17
_MOST_STEPS = 12
_LAST = {Part.INPUT: "input", Part.COMMUNICATION: "comm."}


def figures(summary: TraceSummary, terminal: Terminal) -> Iterator[str]:
    """What the summary alone tells: it is there before XProf has answered."""
    yield from terminal.wrapped(headline(summary), bold=True)
    for host in summary.hosts:
        told = f"{host.host}: {host.events:,} host events in {words.duration(host.span_ms)}"
        yield from terminal.wrapped(told, limit=200)
    yield ""
    yield from _devices(summary, terminal)
    yield from _steps(summary.steps, terminal)
    if not used(summary):
        yield from _host_ops(summary, terminal)
    for note in summary.health:
        mark, colour = ("▲", "yellow") if note.level == "warning" else ("·", None)
        yield from terminal.wrapped(f"{mark} {note.message}", fg=colour)
    if summary.health:
        yield ""


def verdicts(
    summary: TraceSummary,
    xprof: XprofVerdict | None,
    checks: Iterable[CheckResult],
    terminal: Terminal,
) -> Iterator[str]:
    """XProf's verdict beside ours, and the checks that read a trace."""
    if xprof is not None:
        yield from _xprof(summary, xprof, terminal)
        yield ""
    for check in checks:
        yield from _check(check, terminal)


def _check(check: CheckResult, terminal: Terminal) -> Iterator[str]:
    """One line of the checklist: every status here, so the words need a wider column than findings do."""
    look = reading.LOOKS[check.status]
    status = terminal.style(f"{look.glyph} {look.word:<{_STATUS - 2}}", fg=COLOURS.get(check.status))
    yield status + terminal.style(plain.one_line(f"{check.number} {check.title}"), bold=True)
    yield from terminal.wrapped(check.summary, _STATUS, limit=400)


def _row(terminal: Terminal, name: str, text: str) -> Iterator[str]:
    """A name in its column, and words that fill the rest."""
    lead = f"  {name:<{_NAMES - 2}}"
    for line in terminal.wrapped(text, _NAMES, limit=400):
        yield terminal.style(lead, dim=True) + line[_NAMES:]
        lead = " " * _NAMES


def _devices(summary: TraceSummary, terminal: Terminal) -> Iterator[str]:
    shown = busiest(summary)
    for device in used(summary):
        make = words.device_in_words(device)
        yield from terminal.wrapped(f"{device.plane}{f' ({make})' if make else ''}", bold=True, limit=200)
        yield from _device(device, steps_of(summary, device), terminal)
        if device is shown:
            yield from _top_ops(device, terminal)
        yield ""
    if len(used(summary)) > 1:
        yield from terminal.wrapped("Top ops of another device: --device N.")
        yield ""


def _device(device: Device, steps: int, terminal: Terminal) -> Iterator[str]:
    busy = f"{words.duration(device.busy_ms)} of {words.duration(device.span_ms)}"
    kernels = words.duration(device.kernel_busy_ms)
    yield from _row(terminal, "busy", f"{busy}, kernels {kernels}, {device.events:,} events")
    idle = f"{words.share(device.idle_fraction)}, {words.counted(device.gap_count, 'gap')}"
    yield from _row(terminal, "idle", f"{idle}, the longest {words.duration(device.longest_gap_ms)}")
    for cause in device.idle_causes:
        yield from _row(
            terminal,
            "",
            f"{words.duration(cause.duration_ms)} {cause.cause.value} ({words.counted(cause.count, 'gap')})",
        )
    lead = "copies"
    for way, copies in words.directions(device.copies).items():
        yield from _row(terminal, lead, f"{way}: {words.copies_in_words(copies, steps)}")
        lead = ""
    if lead:
        yield from _row(terminal, lead, "none")
    found = device.collectives
    if found.count:
        hidden = f"{words.share(found.overlapped_fraction)} hidden by compute"
        told = f"{found.count:,} collectives, {words.duration(found.busy_ms)}, {hidden}"
        yield from _row(terminal, "exchange", told)


def _top_ops(device: Device, terminal: Terminal) -> Iterator[str]:
    lead = "top ops"
    for op in device.top_ops:
        time = f"{words.share(op.share_fraction):>7} {words.duration(op.time_ms):>8} {op.count:>7,}×  "
        marks = f" [{', '.join(words.op_marks(op))}]" if words.op_marks(op) else ""
        room = max(terminal.width - _NAMES - len(time) - len(marks), 20)
        name = _name(op.name, room)
        yield (
            terminal.style(f"  {lead:<{_NAMES - 2}}", dim=True)
            + time
            + name
            + terminal.style(marks, dim=True)
        )
        behind = _name(op.op, room - 4)
        if behind and op.op not in op.name:
            yield " " * (_NAMES + len(time)) + terminal.style(f"for {behind}", dim=True)
        lead = ""


def _name(name: str, room: int) -> str:
    """A name without what a terminal obeys, in the columns that are left."""
    return words.short(plain.one_line(name, 10_000), room)


def _host_ops(summary: TraceSummary, terminal: Terminal) -> Iterator[str]:
    """What the CPU ran: there being no device, the executor's threads tell."""
    for host in summary.hosts:
        for title, ops in (("ops", host.top_ops), ("input ops", host.top_input_ops)):
            lead = title
            for op in ops:
                time = f"{words.duration(op.time_ms):>8} {op.count:>7,}×  "
                room = max(terminal.width - _NAMES - len(time), 20)
                kind, place = words.host_op(op)
                kind = _name(kind, room)
                behind = f" {_name(place, room - len(kind) - 1)}" if place and room - len(kind) > 12 else ""
                lead = terminal.style(f"  {lead:<{_NAMES - 2}}", dim=True)
                yield lead + time + kind + terminal.style(behind, dim=True)
                lead = ""
    yield ""


def _steps(steps: tuple[Step, ...], terminal: Terminal) -> Iterator[str]:
    total = split(steps)
    if total is None:
        return
    parts = [part for part in Part if total.parts_ms[part]]
    rows = [("step", "length", *(_LAST.get(part, part.value) for part in parts))]
    everything = [f"{100 * total.share(part):.3g} %" for part in parts]
    rows.append((f"all {total.count}", words.duration(total.duration_ms), *everything))
    for step in steps[:_MOST_STEPS]:
        one = split([step])
        assert one is not None
        times = [words.duration(one.parts_ms[part]) for part in parts]
        rows.append(
            (plain.one_line(words.step_label(step, steps), 24), words.duration(step.duration_ms), *times)
        )
    yield from terminal.table(rows, {})
    if len(steps) > _MOST_STEPS:
        yield f"{len(steps) - _MOST_STEPS} more steps: --json lists all."
    yield ""


def _xprof(summary: TraceSummary, verdict: XprofVerdict, terminal: Terminal) -> Iterator[str]:
    total = split(summary.steps)
    if verdict.error:
        yield from terminal.wrapped(f"XProf gave no verdict: {verdict.error}", limit=400)
        return
    lead = f"XProf {verdict.version or ''}".strip()
    theirs = verdict.classification or verdict.recommendation or "no verdict"
    if verdict.steps:
        shares = {
            "input": verdict.input_fraction,
            "launch": verdict.launch_fraction,
            "others": verdict.other_fraction,
        }
        told = ", ".join(
            f"{name} {words.share(share)}" for name, share in shares.items() if share is not None
        )
        theirs = f"{theirs} ({words.counted(verdict.steps, 'step')}: {told})"
    yield from terminal.wrapped(f"{lead} says: {theirs}", limit=400)
    if total:
        names = {"input": Part.INPUT, "launch": Part.LAUNCH, "others": Part.OTHER}
        told = ", ".join(f"{name} {words.share(total.share(part))}" for name, part in names.items())
        ours = f"{classify(total)} ({words.counted(total.count, 'step')}: {told})"
        yield from terminal.wrapped(f"tfaudit says: {ours}", limit=400)
    for reason in differences(summary, verdict):
        yield from terminal.wrapped(f"  – {reason}", limit=600)

"""The command line: the only place that prints, exits, and turns errors into exit codes."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NoReturn

import click

from . import __version__
from .errors import MeasurementError, TfauditError, UsageError
from .variants import VARIANTS

#: Statuses that end a run with exit code 1, by the word given to ``--fail-on``.
FAIL_ON = {"warn": ("warn", "fail"), "fail": ("fail",), "never": ()}

#: Time for the timed steps of all variants, unless the user gives that or the steps.
DEFAULT_BUDGET_S = 24.0

NOBODY = 'Nobody answers: run this in a terminal, or write lines such as "7.3" = "yes" into {} by hand.'

#: Exit codes: nothing failed, findings, wrong usage or target, nothing measured.
OK, FINDINGS, USAGE, NOT_MEASURED = 0, 1, 2, 3


class Duration(click.ParamType):  # type: ignore[type-arg]
    """Seconds, with ``s``, ``m`` or ``h`` behind them if need be."""

    name = "duration"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)?", str(value).strip())
        if match is None or float(match[1]) <= 0:
            self.fail(f"{value!r} is not a time: write 90, 90s, 2m or 1h.", param, ctx)
        return float(match[1]) * {"s": 1, "m": 60, "min": 60, "h": 3600}[match[2] or "s"]


class Command(click.Command):
    """A command whose expected errors are one sentence and an exit code."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if self.name != "run":
                raise
            hint = f"No such option {error.option_name!r}. Your own program's arguments follow after --."
            raise click.UsageError(hint, ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except TfauditError as error:
            complain(str(error))
            ctx.exit(error.exit_code)
        except BrokenPipeError:
            raise
        except OSError as error:
            complain(f"{error.filename or 'A file'} cannot be used: {error.strerror}.")
            ctx.exit(USAGE)


def complain(sentence: str) -> None:
    """Say what is wrong, on stderr."""
    click.echo(f"{click.style('Error:', fg='red')} {printable(sentence)}", err=True)


def printable(text: str) -> str:
    """Text from elsewhere without what a terminal would obey."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in text)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tfaudit")
def cli() -> None:
    """Audit a Keras training job by running it: what bounds it, what that costs, what to change."""


def color_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--no-color``, which the variable NO_COLOR also sets."""

    def apply(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value or os.environ.get("NO_COLOR"):
            ctx.color = False

    return click.option("--no-color", is_flag=True, expose_value=False, callback=apply, help="No colours.")(
        function
    )


output_option = click.option("-o", "--output", type=click.Path(path_type=Path), help="Run folder.")
price_option = click.option(
    "--price",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="What this machine costs per hour.",
)
storage_option = click.option(
    "--storage",
    multiple=True,
    metavar="FOLDER",
    help="Where checkpoints and logs are kept: size and age are told.",
)
fail_option = click.option(
    "--fail-on",
    type=click.Choice(list(FAIL_ON)),
    default="fail",
    show_default=True,
    help="Findings that end in exit code 1.",
)
check_option = click.option(
    "-c",
    "--check",
    "checks",
    multiple=True,
    metavar="ID",
    help="Judge only these; `tfaudit checks` lists them.",
)
answers_option = click.option(
    "--answers",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What people say of the checks; `tfaudit answer` writes it.",
)


def terminal(color: bool | None) -> tuple[bool, int]:
    """Whether to colour what goes to stdout, unless that was said, and how many columns to fill."""
    return sys.stdout.isatty() if color is None else color, min(shutil.get_terminal_size().columns, 100)


@dataclass(frozen=True)
class Display:
    """How results are shown."""

    quiet: bool
    color: bool | None

    def report(self, report: Any, folder: Path) -> None:
        """The summary on stdout, and where the report is."""
        if self.quiet:
            return
        from .report import text

        color, width = terminal(self.color)
        click.echo(text.render(report, color=color, width=width), color=color)
        click.echo(f"Report: {folder / 'report.html'}")


@cli.command(cls=Command)
@click.argument("target")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@output_option
@click.option("--overwrite", is_flag=True, help="Replace the run that the folder holds.")
@click.option(
    "--variant", "variants", multiple=True, metavar="ID", help=f"Run only these: {', '.join(VARIANTS)}."
)
@check_option
@click.option("--steps", type=click.IntRange(min=1), help="Timed steps per variant, at least.")
@click.option(
    "--launches",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Processes per timed variant.",
)
@click.option(
    "--time-budget", type=Duration(), help="Longest time for the timed steps of all variants.  [24s]"
)
@click.option(
    "--timeout", type=Duration(), default=300.0, help="Longest time to load, or to compile.  [300s]"
)
@price_option
@storage_option
@answers_option
@fail_option
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of every variant.")
@click.option("--spawn", is_flag=True, help="A fresh interpreter per variant, no fork server.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@color_option
@click.pass_context
def run(ctx: click.Context, /, target: str, arguments: tuple[str, ...], **options: Any) -> None:
    """Audit TARGET: a script, file.py:factory, a module or module:factory.

    Arguments for the target follow after --: tfaudit run train.py -- --epochs 3
    """
    from . import folder as folders
    from . import launch, runner
    from .records import write
    from .sampling import Sampler

    terminate_like_interrupt()
    answers = read_answers(options["answers"])
    plan = make_plan(target, arguments, options)
    folder = (options["output"] or folders.default(target, datetime.now())).absolute()
    folders.prepare(folder, options["overwrite"])
    write(folders.plan_path(folder), plan)
    observer = make_observer(plan.variants, options["quiet"], ctx.color)
    sampler = Sampler()
    start = launch.launcher(folder / "launcher.log", options["spawn"])
    try:
        runner.run(plan, folder / "variants", observer, start, sampler)
    except KeyboardInterrupt:
        pass  # from elsewhere than our own handler: report what is on disk
    finally:
        ignore_interrupts()
        start.close()
        sampler.close()
    try:
        report = judge(folder, Display(options["quiet"], ctx.color), answers=answers)
    except UsageError as error:  # a disk that is full, not a user that is wrong
        raise MeasurementError(str(error)) from None
    ctx.exit(exit_code(report, options["fail_on"]))


def read_answers(path: Path | None) -> Any:
    """The answers in a file; None when none is named. Raises `UsageError`."""
    if path is None:
        return None
    from . import answers

    return answers.read(path)


def look_at(paths: tuple[str, ...]) -> Any:
    """What lies in folders of checkpoints and logs. Raises `UsageError`."""
    from .program import stored

    if "" in paths:
        raise UsageError("--storage names no folder: give it one of checkpoints or logs.")
    return tuple(stored.look(Path(path)) for path in paths)


def make_plan(target: str, arguments: tuple[str, ...], options: dict[str, Any]) -> Any:
    """What to run, from the command line. Raises `TfauditError` for what cannot be."""
    from . import checking, machine, variants
    from .program import source
    from .records import Plan, Settings
    from .target import find

    refuse_surrogates(target, *arguments, str(options["output"] or ""))
    found = find(target, arguments)
    read = source.read(found)
    refuse_own_loop(found, read)
    checks = checking.choose(options["checks"])
    if options["variants"]:
        wanted = set(options["variants"])
    else:
        accelerated = machine.may_have_accelerator()
        named = {name for check in checks.values() for name in check.variants}
        wanted = {name for name in named if accelerated or not VARIANTS[name].for_accelerators}
    chosen = variants.plan(wanted)
    if importlib.util.find_spec("tensorflow") is None:
        raise MeasurementError(
            "TensorFlow is not installed in this Python: install yours, or tfaudit[tensorflow]."
        )
    budget = options["time_budget"] or (None if options["steps"] else DEFAULT_BUDGET_S)
    return Plan(
        target=found,
        working_directory=str(Path.cwd()),
        variants=chosen,
        checks=tuple(checks),
        settings=Settings(
            steps=options["steps"],
            time_budget_s=budget,
            launches=options["launches"],
            phase_timeout_s=options["timeout"],
            seed=options["seed"],
        ),
        source=read,
        machine=machine.describe(),
        usd_per_hour=options["price"],
        storage=look_at(options["storage"]),
        tfaudit_version=__version__,
        started_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )


def refuse_surrogates(*words: str) -> None:
    """Refuse names that are no UTF-8. Raises `UsageError`."""
    for word in words:
        if word.encode(errors="replace").decode() != word:
            raise UsageError(f"{printable(word)!r} is not valid UTF-8, and cannot be recorded.")


def refuse_own_loop(target: Any, source: Any) -> None:
    """Refuse a script that trains without ``fit``: it would run to its end, and save its model.

    Raises `UsageError` when the project's source calls no ``fit`` anywhere, but has a loop of its own.
    """
    calls = {name.rpartition(".")[2]: place for name, place in source.calls.items()}
    loop = calls.get("GradientTape") or calls.get("train_on_batch")
    if target.kind in ("script", "module") and loop and "fit" not in calls:
        raise UsageError(
            f"{target.name} trains in a loop of its own ({loop}) and never calls Model.fit: name a factory"
            f" that returns tfaudit.Job(model, dataset, train_step), as {target.name}:factory."
        )


def make_observer(variants: tuple[str, ...], quiet: bool, color: bool | None) -> Any:
    """Bars on a terminal, lines elsewhere, nothing when quiet."""
    from . import progress

    if quiet:
        return progress.Silent()
    kind = progress.Bars if sys.stderr.isatty() else progress.Lines
    return kind(variants, color)


def judge(folder: Path, display: Display, **changes: Any) -> Any:
    """Gather a run folder, judge it, write the reports into it, and show the summary."""
    from msgspec.structs import replace

    from . import checking
    from . import folder as folders
    from .records import write
    from .report import FORMATS, document

    evidence = folders.gather(folder)
    names = changes.pop("checks", ()) or evidence.plan.checks
    evidence = replace(evidence, **{name: value for name, value in changes.items() if value is not None})
    report = document.build(evidence, checking.choose(names).values())
    html = FORMATS["html"](report)
    try:
        write(folders.evidence_path(folder), evidence)
        write(folders.report_path(folder, "json"), report)
        folders.report_path(folder, "html").write_text(html, encoding="utf-8")
    except OSError as error:
        place = error.filename or folder
        raise UsageError(f"The report cannot be written to {place}: {error.strerror}.") from None
    show_failure(evidence, display)
    display.report(report, folder)
    return report


def show_failure(evidence: Any, display: Display) -> None:
    """When the target itself failed: their traceback, once, and the sentence."""
    baseline = evidence.variant("baseline")
    failure = baseline.failure if baseline else None
    if failure is None or failure.kind == "interrupted" or evidence.rates("baseline"):
        return
    if failure.detail and not display.quiet:
        click.echo(printable(failure.detail.rstrip()), err=True)
    complain(failure.message)


def exit_code(report: Any, fail_on: str) -> int:
    """0 nothing failed, 1 findings, 2 the target is at fault, 3 could not measure or interrupted."""
    baseline = next((variant for variant in report.variants if variant.id == "baseline"), None)
    if not report.complete:
        return NOT_MEASURED
    if baseline is None or baseline.samples_per_s is None:
        blamed = baseline and baseline.failure and baseline.failure.blames_target
        return USAGE if blamed else NOT_MEASURED
    return FINDINGS if any(report.counts[status] for status in FAIL_ON[fail_on]) else OK


#: Signals that end a run; a closed terminal's is not known on Windows, and nohup has it ignored.
ALWAYS_ENDING = (signal.SIGINT, signal.SIGTERM)
ENDING = (*ALWAYS_ENDING, signal.SIGHUP) if hasattr(signal, "SIGHUP") else ALWAYS_ENDING


def terminate_like_interrupt() -> None:
    """Ctrl-C, SIGTERM or a closed terminal ends a run once: what was measured until then is reported.

    Further signals are ignored, lest an impatient second one cost the report.
    """

    def interrupt(number: int, frame: Any) -> NoReturn:
        ignore_interrupts()
        raise KeyboardInterrupt

    for number in ENDING:
        if number in ALWAYS_ENDING or signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves it
            signal.signal(number, interrupt)


def ignore_interrupts() -> None:
    """What is left to do is short, and makes the report."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


@cli.command(cls=Command)
@click.argument("folder", type=click.Path(path_type=Path))
@check_option
@price_option
@storage_option
@answers_option
@fail_option
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@color_option
@click.pass_context
def audit(ctx: click.Context, /, folder: Path, fail_on: str, quiet: bool, **changes: Any) -> None:
    """Judge a finished run again, without running anything, and rewrite its reports.

    TensorFlow is not needed. Answers given earlier count until others are given.
    """
    changes["usd_per_hour"] = changes.pop("price")
    changes["answers"] = read_answers(changes["answers"])
    changes["storage"] = look_at(changes["storage"]) or None
    report = judge(folder.absolute(), Display(quiet, ctx.color), **changes)
    ctx.exit(exit_code(report, fail_on))


@cli.command(cls=Command)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("-f", "--format", "form", default="text", show_default=True, help="html, json, md or text.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A file instead of stdout.")
@color_option
@click.pass_context
def report(ctx: click.Context, folder: Path, form: str, output: Path | None) -> None:
    """Render a finished run's report once more."""
    from . import folder as folders
    from .report import FORMATS, text

    if form not in FORMATS:
        raise UsageError(f"There is no format {form!r}: choose from {', '.join(FORMATS)}.")
    document = folders.report(folder)
    if form == "text" and output is None:
        color, width = terminal(ctx.color)
        click.echo(text.render(document, color=color, width=width), color=color, nl=False)
        return
    rendered = FORMATS[form](document)
    if output is None:
        click.echo(rendered, nl=not rendered.endswith("\n"))
        return
    try:
        output.write_text(rendered, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}.") from None


@cli.command(cls=Command)
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON, and nothing else.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a page with a timeline.")
@click.option("--perfetto", type=click.Path(path_type=Path), metavar="FILE", help="Write it for Perfetto.")
@click.option("--step", type=int, help="Only this step.  [HTML: that of median length]")
@click.option("--device", type=int, help="Only this device.  [HTML: the busiest]")
@click.option("--xprof/--no-xprof", default=True, help="Ask XProf, too.  [default: yes]")
@color_option
@click.pass_context
def trace(ctx: click.Context, /, path: Path, step: int | None, device: int | None, **options: Any) -> None:
    """Tell where the time went in PATH: .xplane.pb, .trace.json(.gz), a log folder or a run's."""
    from functools import cache

    from . import trace_command as command
    from .trace import to_perfetto, xprof_verdict

    of_a_run = path / "variants" / "profiled" / "trace"
    path = of_a_run if of_a_run.is_dir() else path
    wanted = command.Wanted(step, device)
    whole, part = command.read(path, wanted)
    ask = cache(lambda: xprof_verdict(path, command.XPROF_TIMEOUT_S) if options["xprof"] else None)
    if options["as_json"]:
        click.echo(command.as_json(part), nl=False)
    else:
        color, width = terminal(ctx.color)
        for text in command.as_text(path, whole, part, ask, color=color, width=width):
            click.echo(text, color=color)
    if options["perfetto"]:
        command.save(options["perfetto"], to_perfetto(path))
    if options["html"]:
        command.save(options["html"], command.page(path, whole, wanted, ask()))


@cli.command(cls=Command)
@color_option
def checks() -> None:
    """List the checks by section."""
    from .checking import load

    section = ""
    for item in load().values():
        if item.section != section:
            section = item.section
            click.echo(click.style(f"\n{section}" if item.number != "1.1" else section, bold=True))
        how = ", ".join(dict.fromkeys((*item.needs, *item.uses))) or "a person's answer"
        click.echo(f"{item.number:>5}  {item.id}: {item.title}  {click.style(f'[{how}]', dim=True)}")


@cli.command(cls=Command)
@click.argument("check")
@color_option
@click.pass_context
def explain(ctx: click.Context, check: str) -> None:
    """Tell what CHECK looks at, why that matters, and how to fix it: 4.2, or an id."""
    from . import checking, documentation
    from .report.text import Terminal

    color, width = terminal(ctx.color)
    for line in documentation.explained(checking.find(check), Terminal(color, width)):
        click.echo(line, color=color)


@cli.command(cls=Command)
@click.argument("target", metavar="FOLDER_OR_FILE", type=click.Path(path_type=Path))
@click.option("--all", "also_unknown", is_flag=True, help="Ask about unknown checks, too.")
@click.option("-c", "--check", "names", multiple=True, metavar="ID", help="Ask about these, answered or not.")
@click.option(
    "--answers",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where the answers go.  [tfaudit-answers.toml in the run folder]",
)
@click.option("--by", metavar="NAME", help="Who answers.  [your login name]")
@color_option
@click.pass_context
def answer(ctx: click.Context, /, target: Path, answers: Path | None, by: str | None, **which: Any) -> None:
    """Ask what only a person can tell of a finished run, and write the answers to a file.

    Each answer is saved at once. `tfaudit audit FOLDER --answers FILE` applies them.
    """
    from . import answers as files
    from . import asking

    place = asking.place(target, answers)
    answered = {given.check for given in files.read(place.answers)} if place.answers.exists() else set()
    items = asking.items(place.report, answered=answered, **which)
    if not items:
        click.echo(asking.nothing(place.report, which["also_unknown"]))
        return
    by = asking.login().encode(errors="replace").decode() if by is None else by
    refuse_surrogates(by)
    saved = interview(items, place, by, ctx.color)
    click.echo()
    if saved:
        click.echo(printable(f"Answers saved in {place.answers}: {saved}. To apply them:"))
        click.echo(printable(f"  {place.how_to_apply}"))
    else:
        click.echo("No answer was given, and nothing written.")


def interview(items: list[Any], place: Any, by: str, color: bool | None) -> int:
    """Ask one item after another until all are done or the person has enough; how many were answered."""
    from msgspec.structs import replace

    from . import answers, asking
    from .records import Answer
    from .report.text import Terminal

    color, width = terminal(color)
    choice = click.Choice([*asking.KEYS, asking.SKIP, asking.QUIT], case_sensitive=False)
    saved = heard = 0
    try:
        for number, item in enumerate(items, start=1):
            for line in asking.lines(item, f"{number} of {len(items)}", Terminal(color, width)):
                click.echo(line, color=color)
            key = click.prompt("Yes, no, not applicable, skip or quit", type=choice)
            heard += 1
            if key == asking.QUIT:
                break
            if key == asking.SKIP:
                continue
            given = Answer(check=item.id, said=asking.KEYS[key], by=by, on=datetime.now().date())
            answers.save(place.answers, given, asking.given(place.report))
            saved += 1
            if note := click.prompt("A note, if you like", default="", show_default=False):
                answers.save(place.answers, replace(given, note=note))
    except click.Abort:  # Ctrl-C, or the end of what was piped
        if not heard and not sys.stdin.isatty():
            raise UsageError(NOBODY.format(place.answers)) from None
    except UnicodeDecodeError:
        raise UsageError("What was typed is not valid UTF-8, and was not saved.") from None
    return saved


def main() -> None:
    """The console script."""
    open_standard_streams()
    cli(prog_name="tfaudit")


def open_standard_streams() -> None:
    """Have something behind each standard stream, also where the caller closed it (``2>&-``).

    Python has None for such a stream, and the next file or socket would get its number.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))

"""The command line: what it says, where it says it, and what it exits with."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import click
import pytest
from checks.builders import block, evidence, failed, measured, program, run_folder
from click.testing import CliRunner, Result

from tfaudit import __version__, answers, launch, machine, runner
from tfaudit.checking import load
from tfaudit.cli import ENDING, Duration, cli
from tfaudit.evidence import Evidence
from tfaudit.records import Plan, Report, Source, VariantResult, read, write
from tfaudit.report import FORMATS
from tfaudit.runner import not_run
from tfaudit.variants import VARIANTS


def tfaudit(*arguments: object) -> Result:
    """Run a command; anything but an exit is an error of the test."""
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], catch_exceptions=False)


def refused(*arguments: object) -> str:
    """The one sentence of a command that ends with exit code 2 and prints nothing else."""
    result = tfaudit(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ") and result.stderr.endswith(".\n")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("Error: ").removesuffix("\n")


@pytest.fixture(autouse=True)
def small_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder of its own to work in; `run` replaces the handlers of signals for good."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    handlers = {number: signal.getsignal(number) for number in ENDING}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the HTML report's contents out, which take longest to make."""
    monkeypatch.setitem(FORMATS, "html", lambda report: report.headline)


FINE = evidence(
    measured("baseline", [100.0] * 8, program=program()),
    cached_input=100.0,
    source=Source(),
)
INPUT_BOUND = evidence(measured("baseline", [100.0] * 8, program=program()), cached_input=200.0)


# Words ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_names_every_command(flag: str) -> None:
    result = tfaudit(flag)
    assert result.exit_code == 0
    for command in ("run", "audit", "report", "answer", "checks", "explain"):
        assert f"\n  {command} " in result.stdout


@pytest.mark.parametrize("command", ["run", "audit", "report", "answer", "checks", "explain"])
def test_every_command_explains_itself(command: str) -> None:
    result = tfaudit(command, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: cli {command}")


def test_the_version() -> None:
    assert tfaudit("--version").stdout == f"tfaudit, version {__version__}\n"


def test_checks_are_listed_by_section() -> None:
    result = tfaudit("checks")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "Performance analysis"
    title = {item.number: item.title for item in load().values()}
    needs = "baseline, cached-input, constant-batch, source-cached, input-only, price, machine, program"
    assert f"  1.8  input-bound-training: {title['1.8']}  [{needs}]" in lines
    assert lines.index("Instance choice") < lines.index("Can these numbers be trusted?")
    assert [line.split()[0] for line in lines if line.endswith("]")] == list(title)


def test_a_check_is_explained_by_number_or_id() -> None:
    result = tfaudit("explain", "1.8")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("1.8 Waiting for input\nPerformance analysis · input-bound-training\n")
    assert result.stdout == tfaudit("explain", "input-bound-training").stdout


@pytest.mark.parametrize("name", ["9.9", "\033[2J", ""])
def test_what_is_no_check_is_not_explained(name: str) -> None:
    assert refused("explain", name) == (
        f"There is no check {name!r}: give a number such as 1.8 or an id such as input-bound-training;"
        " `tfaudit checks` lists them."
    )


# Durations ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        ("90s", 90.0),
        ("1.5", 1.5),
        ("2m", 120.0),
        ("2 min", 120.0),
        ("1.5h", 5400.0),
        (" 3 s ", 3.0),
    ],
)
def test_a_duration(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["soon", "", "0", "0s", "-3", "3d", "1e3", "3ss", "1,5", "nan", "inf", "s"])
def test_what_is_no_duration_is_wrong_usage(text: str) -> None:
    result = tfaudit("run", "train.py", f"--time-budget={text}")
    assert result.exit_code == 2
    assert f"{text!r} is not a time: write 90, 90s, 2m or 1h." in result.stderr


# audit ----------------------------------------------------------------------------------------------


def audit(given: Evidence, *arguments: object, without: tuple[str, ...] = ()) -> Result:
    return tfaudit("audit", run_folder(Path("out"), given, without=without), *arguments)


def test_a_finished_run_is_judged_and_reported_without_running_anything() -> None:
    result = audit(INPUT_BOUND)
    assert "Input-bound: training reaches 50 %" in result.stdout
    assert f"Report: {Path.cwd()}/out/report.html\n" in result.stdout
    assert result.stderr == ""
    written = sorted(path.name for path in Path("out").iterdir())
    assert written == ["evidence.json", "plan.json", "report.html", "report.json", "variants"]
    assert read(Path("out/report.json"), Report).headline.startswith("Input-bound")
    assert read(Path("out/evidence.json"), Evidence).variants == INPUT_BOUND.variants


def test_the_report_has_the_names_that_tools_rely_on() -> None:
    audit(INPUT_BOUND)
    report = json.loads(Path("out/report.json").read_text())
    assert {
        "schema_version", "headline", "target", "environment", "variants", "comparisons", "checks",
    } <= set(report)  # fmt: skip
    assert {"kind", "path", "commit"} <= set(report["target"])
    assert "versions" in report["environment"]
    assert {
        "id", "status", "failure", "samples_per_s", "step_ms", "compile_s", "batch_size", "resolved",
    } <= set(report["variants"][0])  # fmt: skip
    assert set(report["variants"][0]["samples_per_s"]) == {"median", "low", "high"}
    assert {"jit_compile", "dtype_policy"} <= set(report["variants"][0]["resolved"])
    assert {"variant", "reference", "ratio", "verdict"} <= set(report["comparisons"][0])
    assert {
        "id", "number", "section", "title", "status", "summary", "facts", "threshold", "fix",
    } <= set(report["checks"][0])  # fmt: skip
    assert {item["number"] for item in report["checks"]} >= {"1.8", "4.1", "8.1"}


EXITS: dict[str, tuple[Evidence, tuple[str, ...], int]] = {
    "nothing failed": (FINE, (), 0),
    "something failed": (INPUT_BOUND, (), 1),
    "something failed, and that is asked for": (INPUT_BOUND, ("--fail-on", "fail"), 1),
    "something failed, and warnings are asked for": (INPUT_BOUND, ("--fail-on", "warn"), 1),
    "something failed, and never mind": (INPUT_BOUND, ("--fail-on", "never"), 0),
    "only warnings": (FINE, ("--check", "7.1"), 0),
    "only warnings, and they are asked for": (FINE, ("--check", "7.1", "--fail-on", "warn"), 1),
    "the failed check is not asked": (INPUT_BOUND, ("--check", "1.3"), 0),
    "the target does not load": (evidence(failed("baseline", "raised", "load")), (), 2),
    "the target never fits": (evidence(failed("baseline", "no-fit", "load")), (), 2),
    "the target has no data": (evidence(failed("baseline", "no-data", "build")), (), 2),
    "training raised": (evidence(failed("baseline", "raised", "build"), cached_input=100.0), (), 3),
    "training was killed": (evidence(failed("baseline", "killed", "measure")), (), 3),
    "training was killed after some blocks": (
        evidence(failed("baseline", "killed", "measure", *[100.0] * 6)),
        (),
        0,
    ),
    "interrupted": (evidence(failed("xla", "interrupted"), baseline=100.0), (), 3),
    "interrupted at once": (evidence(failed("baseline", "interrupted", "load")), (), 3),
    "not run": (evidence(failed("baseline", "not-run", "start")), (), 3),
}


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("case", EXITS)
def test_exit_codes(case: str) -> None:
    given, arguments, code = EXITS[case]
    assert audit(given, *arguments).exit_code == code


def test_a_child_that_could_not_be_started_is_no_fault_of_the_target() -> None:
    """The process that imports TensorFlow has died: nothing could be measured, which is 3."""
    assert audit(evidence(failed("baseline", "no-result", "start"))).exit_code == 3


def test_a_run_that_ended_before_its_last_variant_is_not_complete() -> None:
    assert audit(FINE, without=("cached-input",)).exit_code == 3


def test_a_failure_of_the_target_is_shown_once_with_its_traceback() -> None:
    broken = failed("baseline", "raised", "load")
    detail = 'Traceback (your frames only):\n  File "train.py", line 3\nValueError: no'
    broken = with_failure(broken, message="train.py raised ValueError: no.", detail=detail)
    result = audit(evidence(broken, failed("xla", "not-run", "start")))
    assert result.stderr == f"{detail}\nError: train.py raised ValueError: no.\n"


def with_failure(result: VariantResult, **changes: Any) -> VariantResult:
    from msgspec.structs import replace

    assert result.failure is not None
    return replace(result, failure=replace(result.failure, **changes))


def test_a_terminal_obeys_nothing_that_the_program_wrote() -> None:
    broken = with_failure(
        failed("baseline", "raised", "load"), message="\033[2Jgone\x07.", detail="\033]0;x\x07"
    )
    result = audit(evidence(broken))
    assert "\033" not in result.stderr and "\x07" not in result.stderr
    assert "\033" not in result.stdout


@pytest.mark.parametrize("arguments", [("--no-color",), ()])
def test_there_are_no_colours_where_there_is_no_terminal(arguments: tuple[str, ...]) -> None:
    assert "\033[" not in audit(INPUT_BOUND, *arguments).output


def test_quiet_prints_nothing_and_writes_everything() -> None:
    result = audit(INPUT_BOUND, "--quiet")
    assert (result.exit_code, result.output) == (1, "")
    assert Path("out/report.html").exists()


def test_quiet_still_says_what_is_wrong() -> None:
    result = audit(evidence(failed("baseline", "raised", "load")), "--quiet")
    assert (result.stdout, result.stderr) == ("", "Error: baseline ended: raised.\n")


def test_a_price_is_taken_in_later() -> None:
    audit(FINE, "--price", "3.6")
    report = read(Path("out/report.json"), Report)
    assert report.usd_per_hour == 3.6
    assert report.variants[0].samples_per_usd is not None
    assert report.variants[0].samples_per_usd.median == pytest.approx(100_000.0)


@pytest.mark.parametrize("price", ["0", "-1", "free"])
def test_a_price_must_be_one(price: str) -> None:
    result = audit(FINE, f"--price={price}")
    assert result.exit_code == 2 and "--price" in result.stderr


def test_only_the_checks_asked_for_are_judged() -> None:
    audit(INPUT_BOUND, "-c", "1.8", "--check", "stable-throughput")
    report = read(Path("out/report.json"), Report)
    assert [item.number for item in report.checks] == ["1.3", "1.8"]


def test_a_loss_that_was_no_number_can_be_reported() -> None:
    blocks = tuple(block(100.0, loss=float("nan")) for _ in range(6))
    assert audit(evidence(measured("baseline", blocks=blocks))).exit_code == 0


def test_a_check_that_does_not_exist() -> None:
    folder = run_folder(Path("out"), FINE)
    assert refused("audit", folder, "--check", "9.9").startswith("There is no check '9.9': give a number")


def test_a_folder_that_holds_no_run() -> None:
    assert refused("audit", "nowhere") == (
        f"{Path.cwd()}/nowhere/plan.json does not exist: point at the folder of a finished run."
    )


def test_a_plan_that_is_none() -> None:
    Path("out").mkdir()
    Path("out/plan.json").write_text("{}")
    assert "plan.json is not a Plan document: " in refused("audit", "out")


def test_a_word_that_fail_on_does_not_know() -> None:
    assert audit(FINE, "--fail-on", "error").exit_code == 2


def test_a_run_whose_reports_cannot_be_written() -> None:
    """A run on a read-only disk, or one made by somebody else."""
    folder = run_folder(Path("out"), FINE)
    (folder / "report.html").mkdir()
    assert "report.html" in refused("audit", folder)


# Answers --------------------------------------------------------------------------------------------

#: A factory has no call of fit, so 1.1, 7.1 and 7.4 ask a person.
FACTORY = evidence(measured("baseline", [100.0] * 8, program=program(form="factory")), cached_input=100.0)


def statuses() -> dict[str, str]:
    return {item.number: item.status.value for item in read(Path("out/report.json"), Report).checks}


@pytest.mark.usefixtures("undrawn")
def test_answers_count_until_others_are_given() -> None:
    Path("a.toml").write_text('"7.1" = {answer = "yes", by = "Ann"}\n"1.2" = "no"\n')
    result = audit(FACTORY, "--answers", "a.toml")
    assert (statuses()["7.1"], statuses()["1.2"], statuses()["7.4"]) == ("pass", "warn", "manual")
    assert "Answered yes by Ann." in result.stdout and "Answered no." in result.stdout
    tfaudit("audit", "out")
    assert (statuses()["7.1"], statuses()["1.2"]) == ("pass", "warn")
    Path("a.toml").write_text('"7.4" = "n-a"')
    tfaudit("audit", "out", "--answers", "a.toml")
    assert (statuses()["7.1"], statuses()["7.4"]) == ("manual", "not-applicable")
    Path("a.toml").write_text("")
    tfaudit("audit", "out", "--answers", "a.toml")
    assert statuses()["7.4"] == "manual"
    assert read(Path("out/evidence.json"), Evidence).answers == ()


@pytest.mark.usefixtures("undrawn")
def test_a_no_is_a_finding() -> None:
    Path("a.toml").write_text('"7.1" = "no"')
    assert audit(FACTORY, "-c", "7.1", "--answers", "a.toml", "--fail-on", "warn").exit_code == 1


def test_a_bad_answers_file_leaves_the_reports_alone() -> None:
    folder = run_folder(Path("out"), FACTORY)
    Path("a.toml").write_text('"7.1" = true')
    assert refused("audit", folder, "--answers", "a.toml") == (
        'a.toml: 7.1 is answered true: write "yes", "no" or "n-a", or a table such as'
        ' {answer = "yes", note = "…"}.'
    )
    assert refused("audit", folder, "--answers", "none") == "none cannot be read: No such file or directory."
    assert not (folder / "report.json").exists()


@pytest.fixture
def asked(undrawn: None) -> Path:
    """A reported run with three manual checks, and one that is unknown without a price."""
    audit(FACTORY, *("-c", "1.1", "-c", "1.2", "-c", "7.1", "-c", "7.4"))
    return Path("out")


def answering(typed: str | bytes, *arguments: object) -> Result:
    """`tfaudit answer` of the run, with that typed."""
    words = ["answer", *map(str, arguments or ("out",)), "--by", "Ann"]
    return CliRunner().invoke(cli, words, input=typed, catch_exceptions=False)


def written(path: str = "out/tfaudit-answers.toml") -> dict[str, tuple[str, str, str]]:
    """What a file of answers says, and whether it is of today."""
    found = answers.read(Path(path))
    assert {answer.on for answer in found} == {date.today()}
    return {answer.check: (answer.said, answer.note, answer.by) for answer in found}


def test_each_manual_check_is_asked_about(asked: Path) -> None:
    result = answering("y\nIn the\tlogs.\nN\n\nx\n\n")
    assert (result.exit_code, result.stderr) == (0, "")
    assert written() == {
        "throughput-reported": ("yes", "In the\tlogs.", "Ann"),
        "failing-runs-stopped": ("no", "", "Ann"),
        "experiments-tracked": ("n-a", "", "Ann"),
    }
    for words in (
        "1 of 3\n✎ manual 1.1 Throughput reporting\n",
        "The target has no call of fit: does training report samples per second?\n",
        "Why it matters: An experiment that nobody recorded is run again.\n",
        f"         {load()['experiments-tracked'].question}\n",
        "Yes, no, not applicable, skip or quit (y, n, x, s, q): ",
    ):
        assert words in result.stdout
    assert result.stdout.endswith(
        "\nAnswers saved in out/tfaudit-answers.toml: 3. To apply them:\n"
        "  tfaudit audit out --answers out/tfaudit-answers.toml\n"
    )


def test_a_wrong_key_is_asked_again(asked: Path) -> None:
    result = answering("z\nyes\ny\n\nq\n")
    assert "'z' is not one of 'y', 'n', 'x', 's', 'q'." in result.output
    assert list(written()) == ["throughput-reported"]


@pytest.mark.parametrize("typed", ["s\ns\ny\nTo the end.", "s\ns\ny\nTo the end.\n"])
def test_items_are_skipped(typed: str, asked: Path) -> None:
    answering(typed)
    assert written() == {"experiments-tracked": ("yes", "To the end.", "Ann")}


@pytest.mark.parametrize("typed", ["q\n", "s\nq\n", "s\ns\ns\n", "s\n"])
def test_without_an_answer_nothing_is_written(typed: str, asked: Path) -> None:
    result = answering(typed)
    assert result.exit_code == 0
    assert result.stdout.endswith("No answer was given, and nothing written.\n")
    assert not Path("out/tfaudit-answers.toml").exists()


@pytest.mark.parametrize("typed", ["y\n", "y\nHm.\n"])
def test_what_was_answered_before_the_end_is_saved(typed: str, asked: Path) -> None:
    """Ctrl-C, the end of the input, before the note or after it."""
    result = answering(typed)
    assert (result.exit_code, list(written())) == (0, ["throughput-reported"])
    assert "Answers saved in out/tfaudit-answers.toml: 1." in result.stdout


def test_ctrl_c_loses_nothing(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = iter(["n"])

    def prompt(*arguments: Any, **options: Any) -> str:
        if (key := next(typed, None)) is None:
            raise click.Abort
        return key

    monkeypatch.setattr(click, "prompt", prompt)
    assert answering("").exit_code == 0
    assert written() == {"throughput-reported": ("no", "", "Ann")}


def test_the_walk_goes_on_where_it_stopped(asked: Path) -> None:
    answering("y\n\nq\n")
    result = answering("n\n\ns\n")
    assert "1 of 2\n✎ manual 7.1" in result.stdout
    assert list(written()) == ["throughput-reported", "failing-runs-stopped"]


def test_all_asks_about_unknown_checks_too(asked: Path) -> None:
    result = answering("q\n", "out", "--all")
    assert "1 of 4\n" in result.stdout


def test_a_named_check_is_asked_about_again(asked: Path) -> None:
    Path("a.toml").write_text('"7.1" = "yes"  # for now\n')
    result = answering("n\n\n", "out", "--check", "7.1", "--answers", "a.toml")
    assert "1 of 1\n" in result.stdout
    assert written("a.toml") == {"failing-runs-stopped": ("no", "", "Ann")}
    assert Path("a.toml").read_text().endswith("}  # for now\n")


def test_a_new_file_holds_the_answers_that_were_applied(asked: Path) -> None:
    """Applying it replaces them all."""
    Path("a.toml").write_text('"7.1" = "yes"')
    tfaudit("audit", "out", "--answers", "a.toml")
    answering("y\n\nq\n")
    assert {answer.check for answer in answers.read(Path("out/tfaudit-answers.toml"))} == {
        "failing-runs-stopped",
        "throughput-reported",
    }


def test_when_nothing_is_to_be_asked_it_says_so(undrawn: None) -> None:
    audit(FINE, "-c", "1.2")
    result = answering("")
    assert (result.exit_code, result.stdout) == (
        0,
        "No check waits for a person's answer. --all asks about unknown ones, too: 1.\n",
    )


def test_a_report_alone_needs_a_place_for_the_answers(asked: Path) -> None:
    """Nothing is written beside the user's own files."""
    Path("copy.json").write_bytes((asked / "report.json").read_bytes())
    assert refused("answer", "copy.json") == (
        "copy.json lies in no run folder: say where the answers go with --answers FILE."
    )
    result = answering("y\n\nq\n", "copy.json", "--answers", "my answers.toml")
    assert list(written("my answers.toml")) == ["throughput-reported"]
    assert result.stdout.endswith("  tfaudit audit FOLDER --answers 'my answers.toml'\n")


def test_a_runs_report_may_be_named(asked: Path) -> None:
    answering("y\n\nq\n", "out/report.json")
    assert list(written()) == ["throughput-reported"]


def test_where_nobody_answers_it_says_so(asked: Path) -> None:
    result = answering("")
    assert result.exit_code == 2
    assert result.stderr == (
        'Error: Nobody answers: run this in a terminal, or write lines such as "7.3" = "yes" into'
        " out/tfaudit-answers.toml by hand.\n"
    )


def test_what_is_typed_in_another_encoding(asked: Path) -> None:
    result = answering(b"y\n\xff\n")
    assert result.exit_code == 2
    assert result.stderr == "Error: What was typed is not valid UTF-8, and was not saved.\n"
    assert not Path("out/tfaudit-answers.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nowhere",), "nowhere/report.json does not exist: point at the folder of a finished run."),
        (("out", "--check", "9.9"), "There is no check '9.9': give a number such as 1.8"),
        (
            ("out", "--check", "1.8"),
            "The report has no check input-bound-training: judge it with `tfaudit audit` first.",
        ),
        (("out", "--answers", "bad.toml"), "bad.toml is not TOML ("),
        (("bad.toml",), "bad.toml is not a Report document: "),
        (("out", "--by", "\udc80"), "'\ufffd' is not valid UTF-8, and cannot be recorded."),
    ],
)
def test_what_cannot_be_asked(arguments: tuple[str, ...], sentence: str, asked: Path) -> None:
    Path("bad.toml").write_text("bad")
    assert f"{refused('answer', *arguments)}.".startswith(sentence)


def test_a_terminal_obeys_nothing_in_answers(asked: Path) -> None:
    answering("y\n\033]0;x\x07\033[2J\nq\n")
    shown = tfaudit("audit", "out", "--answers", "out/tfaudit-answers.toml").output
    assert "Answered yes by Ann" in shown
    assert "\033" not in shown and "\x07" not in shown


# report ---------------------------------------------------------------------------------------------


@pytest.fixture
def reported() -> Path:
    """A run folder that holds a report."""
    audit(INPUT_BOUND)
    return Path("out")


BEGINNINGS = {"html": "<!doctype html>", "json": "{", "md": "", "text": ""}


@pytest.mark.parametrize("form", BEGINNINGS)
def test_a_report_is_rendered_on_stdout(form: str, reported: Path) -> None:
    result = tfaudit("report", reported, "--format", form)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.lower().startswith(BEGINNINGS[form])
    assert result.stdout.endswith("\n")
    assert "Input-bound" in result.stdout


def test_text_is_the_format_when_none_is_named(reported: Path) -> None:
    assert tfaudit("report", reported).stdout == tfaudit("report", reported, "-f", "text").stdout


def test_a_report_is_rendered_into_a_file(reported: Path) -> None:
    result = tfaudit("report", reported, "-f", "md", "-o", "comment.md")
    assert (result.exit_code, result.output) == (0, "")
    assert Path("comment.md").read_text() == tfaudit("report", reported, "-f", "md").stdout


def test_the_json_report_is_the_document(reported: Path) -> None:
    tfaudit("report", reported, "-f", "json", "-o", "copy.json")
    assert read(Path("copy.json"), Report) == read(reported / "report.json", Report)


def test_findings_do_not_matter_to_rendering(reported: Path) -> None:
    assert tfaudit("report", reported).exit_code == 0


def test_a_format_that_does_not_exist(reported: Path) -> None:
    assert refused("report", reported, "-f", "pdf") == (
        "There is no format 'pdf': choose from html, json, md, text."
    )


def test_a_run_that_was_not_reported_yet() -> None:
    run_folder(Path("out"), FINE)
    assert refused("report", "out") == (
        "out/report.json does not exist: point at the folder of a finished run."
    )


def test_a_file_that_cannot_be_written(reported: Path) -> None:
    assert refused("report", reported, "-f", "md", "-o", "nowhere/comment.md") == (
        "nowhere/comment.md cannot be written: No such file or directory."
    )


# run ------------------------------------------------------------------------------------------------


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Says whether TensorFlow is installed, whatever is."""
    original = importlib.util.find_spec

    def say(is_there: bool) -> None:
        def find_spec(name: str, package: str | None = None) -> Any:
            if name == "tensorflow":
                return object() if is_there else None
            return original(name, package)

        monkeypatch.setattr(importlib.util, "find_spec", find_spec)

    return say


@pytest.fixture
def planned(
    undrawn: None, installed: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Plan]]:
    """A `run` that starts no child: the plan is kept, every variant is measured at 100 samples/s."""
    plans: list[Plan] = []

    class NoLauncher:
        def close(self) -> None: ...

    def measure(plan: Plan, folder: Path, observer: Any, *rest: Any) -> tuple[VariantResult, ...]:
        plans.append(plan)
        results = tuple(
            measured(name, [100.0] * 8 if VARIANTS[name].purpose == "time" else []) for name in plan.variants
        )
        for result in results:
            (folder / result.id).mkdir()
            write(folder / result.id / "result.json", result)
            observer.variant_finished(result)
        return results

    installed(True)
    monkeypatch.setattr(machine, "may_have_accelerator", lambda: True)
    monkeypatch.setattr(launch, "launcher", lambda log, spawn=False: NoLauncher())
    monkeypatch.setattr(runner, "run", measure)
    Path("train.py").write_text("model.fit(data)")
    yield plans


def test_a_run_ends_with_a_report(planned: list[Plan]) -> None:
    result = tfaudit("run", "train.py", "-o", "out", "--", "--epochs", "3")
    assert result.exit_code == 0
    assert f"Report: {Path.cwd()}/out/report.html" in result.stdout
    assert {path.name for path in Path("out").iterdir()} >= {
        "plan.json", "evidence.json", "report.json", "report.html", "variants",
    }  # fmt: skip
    (plan,) = planned
    assert (plan.target.kind, plan.target.arguments) == ("script", ("--epochs", "3"))
    assert plan.working_directory == str(Path.cwd())
    assert plan.variants == tuple(VARIANTS)
    assert read(Path("out/plan.json"), Plan) == plan


def test_without_an_accelerator_larger_batches_are_tried_where_asked_for(
    planned: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "may_have_accelerator", lambda: False)
    tfaudit("run", "train.py", "-o", "out")
    tfaudit("run", "train.py", "-o", "other", "--variant", "batch-x2")
    assert set(VARIANTS) - set(planned[0].variants) == {"batch-x2", "batch-x4"}
    assert planned[1].variants == ("baseline", "batch-x2")


def test_what_lies_in_storage_is_kept_with_the_run(planned: list[Plan]) -> None:
    """And another audit may look elsewhere."""
    Path("runs").mkdir()
    Path("runs", "model.keras").write_bytes(b"x" * 100)
    tfaudit("run", "train.py", "-o", "out", "--storage", "runs")
    assert (statuses()["7.3"], planned[0].storage[0].kinds[0].bytes) == ("pass", 100)
    assert tfaudit("audit", "out").exit_code == 0
    assert statuses()["7.3"] == "pass"
    assert refused("audit", "out", "--storage", "none") == (
        "none does not exist: give --storage a folder of checkpoints or logs."
    )
    assert refused("audit", "out", "--storage", "").startswith("--storage names no folder")


def test_progress_goes_to_stderr_a_line_for_each_variant(planned: list[Plan]) -> None:
    result = tfaudit("run", "train.py", "-o", "out")
    lines = result.stderr.splitlines()
    assert [line.split()[0] for line in lines] == list(VARIANTS)
    assert lines[0].split(maxsplit=1)[1] == "100 samples/s ±0%"


def test_a_quiet_run_prints_nothing(planned: list[Plan]) -> None:
    assert tfaudit("run", "train.py", "-o", "out", "--quiet").output == ""


def test_without_output_nothing_is_written_beside_the_users_files(planned: list[Plan]) -> None:
    result = tfaudit("run", "train.py")
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["state", "train.py"]
    assert f"Report: {Path.cwd()}/state/tfaudit/train.py-" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "steps", "budget_s", "timeout_s"),
    [
        ([], None, 24.0, 300.0),
        (["--time-budget", "2m"], None, 120.0, 300.0),
        (["--steps", "20"], 20, None, 300.0),
        (["--steps", "20", "--time-budget", "10s"], 20, 10.0, 300.0),
        (["--timeout", "1h"], None, 24.0, 3600.0),
    ],
)
def test_the_limits_of_a_run(
    arguments: list[str], steps: int | None, budget_s: float | None, timeout_s: float, planned: list[Plan]
) -> None:
    tfaudit("run", "train.py", "-o", "out", *arguments)
    settings = planned[0].settings
    assert (settings.steps, settings.time_budget_s, settings.phase_timeout_s) == (steps, budget_s, timeout_s)


def test_a_price_and_a_seed_are_kept_in_the_plan(planned: list[Plan]) -> None:
    tfaudit("run", "train.py", "-o", "out", "--price", "1.006", "--seed", "7")
    assert (planned[0].usd_per_hour, planned[0].settings.seed) == (1.006, 7)
    assert read(Path("out/report.json"), Report).usd_per_hour == 1.006


def test_answers_are_read_before_anything_runs(planned: list[Plan]) -> None:
    Path("a.toml").write_text('"1.2" = "no"')
    tfaudit("run", "train.py", "-o", "out", "--answers", "a.toml")
    assert (statuses()["1.2"], len(planned)) == ("warn", 1)
    Path("a.toml").write_text('"7.3" = "perhaps"')
    assert refused("run", "train.py", "-o", "other", "--answers", "a.toml").startswith(
        'a.toml: 7.3 is answered "perhaps": write'
    )
    assert len(planned) == 1 and not Path("other").exists()


def test_only_the_variants_asked_for_are_run(planned: list[Plan]) -> None:
    """With the baseline, since everything is compared with it; all checks are judged."""
    tfaudit("run", "train.py", "-o", "out", "--variant", "xla", "--variant", "cached-input")
    assert planned[0].variants == ("baseline", "cached-input", "xla")
    assert len(read(Path("out/report.json"), Report).checks) == 54


@pytest.mark.parametrize(
    ("check", "variants"),
    [
        ("1.8", ("baseline", "cached-input", "constant-batch", "source-cached", "input-only")),
        ("input-headroom", ("baseline", "cached-input", "input-only")),
        ("1.9", ("baseline", "profiled")),
        ("5.1", ("baseline", "cached-input", "bfloat16", "float16")),
        ("5.2", ("baseline", "cached-input", "xla", "no-xla")),
        ("7.1", ("baseline",)),
    ],
)
def test_only_what_a_check_needs_is_run(check: str, variants: tuple[str, ...], planned: list[Plan]) -> None:
    tfaudit("run", "train.py", "-o", "out", "--check", check)
    assert planned[0].variants == variants
    assert len(read(Path("out/report.json"), Report).checks) == 1


def test_an_interrupted_run_is_reported(planned: list[Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured before a second Ctrl-C is on disk; what was not says so."""

    def stop(plan: Plan, folder: Path, *rest: Any) -> None:
        (folder / "baseline").mkdir()
        write(folder / "baseline" / "result.json", measured("baseline", [100.0] * 8))
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run", stop)
    result = tfaudit("run", "train.py", "-o", "out")
    assert "Report: " in result.stdout
    report = read(Path("out/report.json"), Report)
    assert [variant.status for variant in report.variants] == ["measured", *["not-run"] * (len(VARIANTS) - 1)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_run_leaves_a_report(
    number: signal.Signals, planned: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "run", lambda *_: os.kill(os.getpid(), number))
    tfaudit("run", "train.py", "-o", "out")
    assert Path("out/report.json").is_file()


def test_a_terminal_that_closes_ends_no_run_under_nohup(
    planned: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    monkeypatch.setattr("tfaudit.cli.ignore_interrupts", lambda: None)
    tfaudit("run", "train.py", "-o", "out")
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_the_launcher_is_closed_whatever_happens(
    planned: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[bool] = []

    class Launcher:
        def close(self) -> None:
            closed.append(True)

    def fail(*_: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(launch, "launcher", lambda log, spawn=False: Launcher())
    monkeypatch.setattr(runner, "run", fail)
    with pytest.raises(RuntimeError):
        tfaudit("run", "train.py", "-o", "out")
    assert closed == [True]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("missing.py",), "There is no file missing.py: check the path of the training script."),
        (("train.py:make",), "train.py has no 'make': it defines no function."),
        (
            ("train.py", "--variant", "fast"),
            f"There is no variant 'fast': choose from {', '.join(VARIANTS)}.",
        ),
        (("train.py", "-o", "train.py"), "{here}/train.py is a file: --output names a folder."),
        (("train.py", "-o", "."), "{here} is not empty and holds no run: name a new folder."),
        (
            ("train.py", "-o", "held"),
            "{here}/held already holds a run: name another folder, or add --overwrite.",
        ),
        (
            ("train.py", "-o", "train.py/out"),
            "{here}/train.py/out cannot be written (Not a directory): name another folder with --output.",
        ),
    ],
)
def test_what_cannot_be_run(arguments: tuple[str, ...], sentence: str, planned: list[Plan]) -> None:
    run_folder(Path("held"), FINE)
    assert refused("run", *arguments) == sentence.format(here=Path.cwd())
    assert planned == []


def test_a_check_that_cannot_be_run(planned: list[Plan]) -> None:
    assert refused("run", "train.py", "-c", "1.88").startswith("There is no check '1.88': ")


def test_a_run_may_be_replaced_when_asked(planned: list[Plan]) -> None:
    run_folder(Path("held"), INPUT_BOUND)
    assert tfaudit("run", "train.py", "-o", "held", "--overwrite", "--check", "1.8").exit_code == 0
    assert not Path("held/variants/xla").exists()
    assert read(Path("held/report.json"), Report).headline == "Not input-bound: cached input gives 1.00×."


def test_without_tensorflow_run_says_so(installed: Callable[[bool], None]) -> None:
    installed(False)
    Path("train.py").write_text("model.fit(data)")
    result = tfaudit("run", "train.py", "-o", "out")
    assert result.exit_code == 3
    assert result.stderr == (
        "Error: TensorFlow is not installed in this Python: install yours, or tfaudit[tensorflow].\n"
    )
    assert not Path("out").exists()


@pytest.mark.parametrize(
    "arguments", [[], ["train.py", "--steps", "0"], ["train.py", "--steps", "many"], ["train.py", "--nope"]]
)
def test_wrong_usage_is_told_by_click(arguments: list[str]) -> None:
    result = tfaudit("run", *arguments)
    assert result.exit_code == 2 and "Usage: " in result.stderr


def test_not_run_is_never_a_result() -> None:
    """The record that stands in for a missing result has a failure, so that nothing reads as measured."""
    assert not_run("xla", "Not run.").failure is not None


def test_a_script_with_a_loop_of_its_own_is_refused_before_it_runs(tmp_path: Path) -> None:
    """It would train to its end, and save its model beside the user's files."""
    (tmp_path / "train.py").write_text(
        "import tensorflow as tf\nwith tf.GradientTape() as tape:\n    1 / 0\n"
    )
    result = CliRunner().invoke(cli, ["run", str(tmp_path / "train.py"), "-o", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "trains in a loop of its own (train.py:2) and never calls Model.fit" in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_standard_stream_changes_nothing(closed: str) -> None:
    done = subprocess.run(f"{sys.executable} -m tfaudit report nowhere {closed}", shell=True, check=False)
    assert done.returncode == 2

"""The sample models: each says in its docstring how it is run and what must fire.

Running them takes minutes, so only the demo runs here unless ``--run-samples`` is given.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tfaudit import checking
from tfaudit.records import Report, Status, read

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "sample_models"
DEMO, CLEAN = "input_bound_images", "well_fed_images"

SAMPLES = {
    path.stem: text
    for path in sorted(FOLDER.glob("*.py"))
    if "expect:" in (text := ast.get_docstring(ast.parse(path.read_text())) or "")
}


def expected(text: str) -> dict[str, set[str]]:
    """Check number → statuses, from lines such as ``expect: 4.1 warn or fail``."""
    lines = re.findall(r"^expect: ([\d.]+) ([\w-]+)(?: or ([\w-]+))?$", text, re.MULTILINE)
    return {number: set(statuses) - {""} for number, *statuses in lines}


def command(text: str) -> list[str]:
    """The words after ``tfaudit run`` in the docstring."""
    match = re.search(r"^\s*tfaudit run (.+)$", text, re.MULTILINE)
    assert match is not None
    return shlex.split(match[1])


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_says_how_to_run_it_and_what_fires(name: str) -> None:
    """The command names the file, and each line a check and its status."""
    text = SAMPLES[name]
    assert command(text)[0].partition(":")[0] == f"sample_models/{name}.py"
    assert set(expected(text)) <= {item.number for item in checking.load().values()}
    assert set().union(*expected(text).values()) <= {"fail", "warn", "manual"}
    assert bool(expected(text)) != ("expect: none" in text)


def test_one_sample_is_clean_and_one_is_the_demo() -> None:
    assert expected(SAMPLES[CLEAN]) == {}
    assert expected(SAMPLES[DEMO]) == {"1.8": {"fail"}, "4.1": {"warn", "fail"}, "4.2": {"warn"}}


def audited(name: str, output: Path, *options: str) -> Report:
    """The report of an audit as the sample's docstring asks for, which must leave no file beside it."""
    run = [sys.executable, "-m", "tfaudit", "run", "--output", str(output), "--fail-on", "never", "--quiet"]
    before = sorted(FOLDER.rglob("*"))
    done = subprocess.run(
        [*run, *options, *command(SAMPLES[name])], cwd=ROOT, env=os.environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert sorted(FOLDER.rglob("*")) == before
    report = read(output / "report.json", Report)
    assert [check.number for check in report.checks if check.status is Status.ERROR] == []
    return report


def unlike(report: Report, wanted: dict[str, set[str]]) -> dict[str, str]:
    """The checks that came out otherwise than wanted, with their status."""
    found = {check.number: check.status.value for check in report.checks}
    return {number: found[number] for number in wanted if found[number] not in wanted[number]}


#: Checks that look at the program alone: what they find needs no measurement.
STATIC = {item.number for item in checking.load().values() if set(item.variants) <= {"baseline"}}


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", SAMPLES)
def test_what_the_program_alone_shows_is_found(name: str, tmp_path: Path) -> None:
    """A step of the baseline, so that there is a job to look at; the clean sample has no such fault."""
    wanted = {number: statuses for number, statuses in expected(SAMPLES[name]).items() if number in STATIC}
    report = audited(name, tmp_path / "run", "--variant", "baseline", "--launches", "1", "--steps", "1")
    assert unlike(report, wanted) == {}
    if name == CLEAN:
        found = [check for check in report.checks if check.number in STATIC]
        assert [check.number for check in found if check.status in (Status.FAIL, Status.WARN)] == []


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", SAMPLES)
def test_what_fires_is_what_the_sample_says(name: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Every expected finding is there with its status; in the clean sample there is none at all."""
    if name != DEMO and not pytestconfig.getoption("--run-samples"):
        pytest.skip("the samples run with --run-samples")
    wanted = expected(SAMPLES[name])
    options: list[str] = []
    if not pytestconfig.getoption("--run-samples"):  # only what its lines are about, to be quick
        options = [word for number in wanted for word in ("--check", number)]
    report = audited(name, tmp_path / "run", *options)
    assert unlike(report, wanted) == {}
    if not wanted:
        findings = [check for check in report.checks if check.status in (Status.FAIL, Status.WARN)]
        assert [(check.number, check.summary) for check in findings] == []

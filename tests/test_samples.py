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


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", SAMPLES)
def test_what_fires_is_what_the_sample_says(name: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Every expected finding is there with its status; in the clean sample there is none at all."""
    if name != DEMO and not pytestconfig.getoption("--run-samples"):
        pytest.skip("the samples run with --run-samples")
    run = [sys.executable, "-m", "tfaudit", "run"]
    options = ["--output", str(tmp_path / "run"), "--fail-on", "never", "--quiet"]
    if not pytestconfig.getoption("--run-samples"):  # only what its lines are about, to be quick
        options += [word for number in expected(SAMPLES[name]) for word in ("--check", number)]
    before = sorted(FOLDER.rglob("*"))
    done = subprocess.run(
        [*run, *options, *command(SAMPLES[name])], cwd=ROOT, env=os.environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    report = read(tmp_path / "run" / "report.json", Report)
    found = {check.number: check.status.value for check in report.checks}
    wanted = expected(SAMPLES[name])
    assert {number: found[number] for number in wanted if found[number] not in wanted[number]} == {}
    if not wanted:
        findings = [check for check in report.checks if check.status in (Status.FAIL, Status.WARN)]
        assert [(check.number, check.summary) for check in findings] == []
    assert sorted(FOLDER.rglob("*")) == before

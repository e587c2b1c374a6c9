"""The run folder: where each document is, and what can be read back from a finished run."""

from __future__ import annotations

import os
import re
import shutil
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec.structs import replace

from .errors import TraceError, UsageError
from .evidence import Evidence, TraceEvidence
from .records import Answer, Plan, Record, Report, VariantResult, read
from .runner import not_run

#: XProf takes seconds for the trace of a run; it may hang, and only its own line waits for it.
XPROF_TIMEOUT_S = 30.0


def plan_path(folder: Path) -> Path:
    return folder / "plan.json"


def result_path(folder: Path, variant: str) -> Path:
    return folder / "variants" / variant / "result.json"


def evidence_path(folder: Path) -> Path:
    return folder / "evidence.json"


def report_path(folder: Path, form: str) -> Path:
    return folder / f"report.{form}"


def answers_path(folder: Path) -> Path:
    """Where `tfaudit answer` writes when nothing is said."""
    return folder / "tfaudit-answers.toml"


def default(target: str, now: datetime) -> Path:
    """Where a run goes when nothing is said: beside no file of the user's."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    name = re.sub(r"[^\w.-]+", "-", Path(target).name) or "run"
    return Path(state) / "tfaudit" / f"{name}-{now:%Y%m%d-%H%M%S}"


def prepare(folder: Path, overwrite: bool = False) -> None:
    """Make an empty run folder.

    Raises `UsageError` when it cannot be written, holds a run, or holds anything else.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: --output names a folder.")
    holds_run = plan_path(folder).exists()
    if holds_run and not overwrite:
        raise UsageError(f"{folder} already holds a run: name another folder, or add --overwrite.")
    try:
        if not holds_run and folder.is_dir() and any(folder.iterdir()):
            raise UsageError(f"{folder} is not empty and holds no run: name a new folder.")
        if holds_run:
            shutil.rmtree(folder / "variants", ignore_errors=True)
            for old in (plan_path(folder), evidence_path(folder), *folder.glob("report.*")):
                old.unlink(missing_ok=True)
        (folder / "variants").mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written ({error.strerror}): name another folder with --output."
        ) from None


def gather(folder: Path) -> Evidence:
    """All that a run left behind, as evidence, with the answers given since. Needs no TensorFlow.

    Raises `UsageError` when the folder holds no run.
    """
    plan = read(plan_path(folder), Plan)
    results = tuple(_result(folder, variant) for variant in plan.variants)
    seen = next((result.environment for result in results if result.environment), None)
    machine = plan.machine
    if seen is not None:
        machine = replace(machine, devices=seen.devices, versions={**machine.versions, **seen.versions})
    return Evidence(
        plan=plan,
        variants=results,
        machine=machine,
        program=next((result.program for result in results if result.program), None),
        trace=_trace(folder) if "profiled" in plan.variants else None,
        usd_per_hour=plan.usd_per_hour,
        storage=plan.storage,
        answers=_answers(evidence_path(folder)),
    )


class _Answered(Record, frozen=True):
    """The one part of an evidence document that was neither planned nor measured."""

    answers: tuple[Answer, ...] = ()


def _answers(path: Path) -> tuple[Answer, ...]:
    """The answers that the evidence of an earlier audit holds.

    Raises `UsageError` when it cannot be read, lest answers be lost without a word.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Answered).answers
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        raise UsageError(
            f"{path} cannot be read for the answers in it: delete it, and give them again with --answers."
        ) from None


def _result(folder: Path, variant: str) -> VariantResult:
    path = result_path(folder, variant)
    if not path.exists():
        return not_run(variant, "The audit ended before it.", "interrupted")
    return read(path, VariantResult)


def _trace(folder: Path) -> TraceEvidence:
    """What the profiled variant's trace tells; one sentence when there is none."""
    from . import trace

    place = folder / "variants" / "profiled" / "trace"
    files = [path for path in place.rglob("*.xplane.pb") if path.is_file()]
    if not files:
        return TraceEvidence(problem="The profiler wrote no trace.")
    size = sum(path.stat().st_size for path in files)
    try:
        return trace.examine(place, xprof_timeout_s=XPROF_TIMEOUT_S)
    except TraceError as error:
        return TraceEvidence(bytes=size, problem=str(error))


def report(folder: Path) -> Report:
    """The report of a finished run. Raises `UsageError` when there is none."""
    return read(report_path(folder, "json"), Report)

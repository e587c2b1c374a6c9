"""Ask XProf for its own verdict, so that it can stand beside ours."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import TraceError
from .reading import XPLANE, find_files
from .summary import XprofVerdict

CHILD = Path(__file__).with_name("xprof_child.py")
_BOUND = re.compile(r"\b(NOT|MODERATELY|HIGHLY|POTENTIALLY) input-bound")
# Where the analysis, the steps, the recommendation and the diagnostics are in the overview page.
ANALYSIS, STEPS, RECOMMENDATION, DIAGNOSTICS = 0, 1, 3, 6


def verdict(path: Path, timeout_s: float) -> XprofVerdict:
    """Return XProf's verdict, or one whose ``error`` says why there is none. Raises nothing."""
    try:
        files = find_files(Path(path))
    except TraceError as error:
        return XprofVerdict(error=str(error))
    if not all(file.name.endswith(XPLANE) for file in files):
        return XprofVerdict(error="XProf reads only .xplane.pb files.")
    try:
        with tempfile.TemporaryDirectory(prefix="tfaudit-xprof-") as folder:
            return _run(files, Path(folder), timeout_s)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        return XprofVerdict(error=f"XProf's answer could not be used ({error}).")


def _run(files: Sequence[Path], folder: Path, timeout_s: float) -> XprofVerdict:
    # XProf writes caches beside its input and takes the host's name from the file's.
    copies = [Path(shutil.copy(file, folder / file.name)) for file in files]
    out, log = folder / "told.json", folder / "stderr.log"
    command = [sys.executable, str(CHILD), str(out), *map(str, copies)]
    with log.open("wb") as stderr:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            cwd=folder,
            start_new_session=True,
        )
        try:
            code = child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return XprofVerdict(error=f"XProf did not finish within {timeout_s:g} s.")
        finally:
            if child.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
    if code or not out.exists():
        return XprofVerdict(error=_why(code, log.read_text(errors="replace")))
    return _read(json.loads(out.read_text(encoding="utf-8")))


def _why(code: int, stderr: str) -> str:
    if "No module named 'xprof" in stderr:
        return "XProf is not installed: pip install tensorboard-plugin-profile."
    if code < 0:
        return f"XProf was killed by signal {-code}."
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return f"XProf failed with exit code {code}: {lines[-1][:300] if lines else 'it said nothing'}"


def _read(told: Mapping[str, Any]) -> XprofVerdict:
    """Read the tables of the overview page; times are strings or numbers, some of them ``-nan``."""
    page = told["overview_page"]
    steps = _rows(page[STEPS])
    total = sum(step.get("stepTimeMs") or 0.0 for step in steps)

    def share(column: str) -> float | None:
        return sum(step.get(column) or 0.0 for step in steps) / total if total else None

    advice = page[RECOMMENDATION].get("p") or {}
    analysis = page[ANALYSIS].get("p") or {}
    statement = str(advice.get("statement") or "")
    bound = _BOUND.search(statement)
    texts = [statement]
    texts += [
        str(advice.get(key) or "")
        for key in ("kernel_launch_statement", "all_other_statement", "precision_statement")
    ]
    return XprofVerdict(
        version=told.get("version"),
        steps=len(steps),
        step_ms=total / len(steps) if steps else None,
        compute_16bit_fraction=_percent(analysis.get("device_compute_16bit_percent")),
        classification=f"{bound[1]} input-bound" if bound else "",
        recommendation=" ".join(text for text in texts if text),
        diagnostics=tuple(str(row.get("message")) for row in _rows(page[DIAGNOSTICS]) if row.get("message")),
        input_fraction=share("infeedTimeMs"),
        output_fraction=share("outfeedTimeMs"),
        launch_fraction=share("kernelLaunchTimeMs"),
        other_fraction=share("otherTimeMs"),
    )


def _rows(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    columns = [column["id"] for column in table.get("cols", [])]
    return [
        {name: cell.get("v") for name, cell in zip(columns, row["c"], strict=False)}
        for row in table.get("rows", [])
    ]


def _percent(text: object) -> float | None:
    found = re.match(r"([\d.]+)\s*%?$", str(text))
    return float(found[1]) / 100 if found else None

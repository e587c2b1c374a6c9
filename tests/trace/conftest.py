"""Fixtures: summaries of traces that a test builds, and the folder of recorded ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from xspaces import PlaneBuilder, write

from tfaudit.trace import summarise
from tfaudit.trace.summary import TraceSummary


@pytest.fixture
def summary(tmp_path: Path) -> Callable[..., TraceSummary]:
    """Writes planes as one file and summarises it."""

    def build(*planes: PlaneBuilder) -> TraceSummary:
        return summarise(write(tmp_path, *planes))

    return build


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder of recorded traces, read in place; without it the test is skipped."""
    beside = Path(__file__).parents[3] / "shared" / "traces"
    folder = Path(os.environ.get("TFAUDIT_TRACES", beside))
    if not (folder / "expected.json").is_file():
        pytest.skip(f"no recorded traces in {folder}")
    return folder

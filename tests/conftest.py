"""Fixtures: one fork server for all tests that run a child, so that TensorFlow is imported once."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tfaudit import launch, machine, runner, variants
from tfaudit.program import source
from tfaudit.progress import Silent
from tfaudit.records import Plan, Settings, VariantResult
from tfaudit.sampling import Sampler
from tfaudit.target import find


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-samples", action="store_true", help="run every sample model for real")


@pytest.fixture(scope="session")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[launch.Launcher]:
    """A running fork server."""
    start = launch.launcher(tmp_path_factory.mktemp("server") / "log")
    yield start
    start.close()


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a program of the user's into a folder of its own, and returns its path."""

    def write(text: str, name: str = "train.py") -> Path:
        path = tmp_path / "user" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    return write


@pytest.fixture
def measured(
    fork_server: launch.Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., dict[str, VariantResult]]:
    """Runs variants of a target as ``tfaudit run`` does, and returns their results by id."""

    def run(
        target: str, *ids: str, arguments: tuple[str, ...] = (), **settings: Any
    ) -> dict[str, VariantResult]:
        place = Path(target.rpartition(":")[0] or target)
        monkeypatch.chdir(place.parent if place.parent.is_dir() else tmp_path)
        found = find(target, arguments)
        quick = {"launches": 1, "warm_up_s": 0.0, "settle_s": 0.0, "shortest_block_s": 0.0}
        settings = {"steps": 4, "time_budget_s": None, "phase_timeout_s": 60.0, **quick, **settings}
        plan = Plan(
            target=found,
            working_directory=str(Path.cwd()),
            variants=variants.plan(ids),
            checks=(),
            settings=Settings(**settings),
            source=source.read(found),
            machine=machine.describe(),
        )
        results = runner.run(plan, tmp_path / "run", Silent(), fork_server, Sampler())
        return {result.id: result for result in results}

    return run

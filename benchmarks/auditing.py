"""What the benchmarks share: audits of small programs with one fork server for all of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tfaudit import folder, launch, machine, runner, variants
from tfaudit.attempt import Attempt
from tfaudit.evidence import Evidence
from tfaudit.program import source
from tfaudit.progress import Silent
from tfaudit.records import Interval, Plan, Settings, write
from tfaudit.sampling import Sampler
from tfaudit.target import find


class Bench:
    """A folder for programs and runs, and a fork server."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.launcher = launch.launcher(place / "launcher.log")

    def write(self, name: str, text: str) -> Path:
        """A program."""
        path = self.place / name
        path.write_text(text, encoding="utf-8")
        return path

    def plan(self, target: str, *wanted: str, **settings: Any) -> Plan:
        found = find(target, ())
        return Plan(
            target=found,
            working_directory=str(self.place),
            variants=variants.plan(wanted),
            checks=(),
            settings=Settings(**settings),
            source=source.read(found),
            machine=machine.describe(),
        )

    def start(self, target: str, variant: str) -> Attempt:
        """One variant's process, warm and frozen. Raises `SystemExit` when it fails."""
        place = self.place / variant
        attempt = Attempt(self.plan(target), variant, place, self.launcher.scratch, Silent())
        attempt.start(self.launcher)
        if not attempt.until_ready():
            raise SystemExit(str(attempt.result.failure))
        attempt.freeze()
        return attempt

    def audit(self, target: str, *wanted: str, **settings: Any) -> Evidence:
        """Run variants as ``tfaudit run`` does. Raises `SystemExit` when one of them fails."""
        plan = self.plan(target, *wanted, **settings)
        run = Path(tempfile.mkdtemp(dir=self.place))
        write(folder.plan_path(run), plan)
        for result in runner.run(plan, run / "variants", Silent(), self.launcher, Sampler()):
            if result.failure is not None:
                raise SystemExit(f"{result.id}: {result.failure.message}\n{result.failure.detail}")
        return folder.gather(run)


def written(ratio: Interval) -> str:
    return f"{ratio.median:.3f} ({ratio.low:.3f}–{ratio.high:.3f})"


@contextmanager
def bench() -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as name:
        made = Bench(Path(name))
        try:
            yield made
        finally:
            made.launcher.close()

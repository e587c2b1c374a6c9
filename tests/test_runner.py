"""Running a plan with children that are threads of this process, speaking over real sockets."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from checks.builders import block, in_rounds, plan

from tfaudit import runner
from tfaudit.attempt import TAIL_BYTES, Attempt, how_it_ended, tail
from tfaudit.errors import MeasurementError
from tfaudit.evidence import FEWEST_BLOCKS
from tfaudit.progress import Silent
from tfaudit.records import Block, Resolved, Settings, VariantRequest, VariantResult, WarmUp, read
from tfaudit.runner import is_known, next_block, progress
from tfaudit.session import (
    Channel,
    Done,
    Failed,
    Finish,
    Found,
    Go,
    Measured,
    PhaseStarted,
    Ready,
    Warm,
    child_end,
    pair,
    runner_end,
)

Script = Callable[[Channel], Any]


class FakeChild:
    """A child whose life is a function; ``code`` is how its process ends once that returns."""

    def __init__(self, script: Script, code: int | None) -> None:
        mine, theirs = pair()
        self.pid = 0
        self.channel = runner_end(mine.detach())
        self.stack_shown = self.ended = self.is_lost = False
        self.signals: list[str] = []
        self._theirs = child_end(theirs.detach())
        self._script, self._code = script, code
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def _live(self) -> None:
        with contextlib.suppress(EOFError, OSError):  # the runner has hung up
            self._script(self._theirs)
        if self._code is not None:
            self._theirs.close()

    def exit_code(self) -> int | None:
        return None if self._thread.is_alive() else self._code

    def signal(self, number: int) -> None:
        self.signals.append(signal.Signals(number).name)

    def memory_bytes(self) -> int:
        return 0

    def show_stack(self, wait_s: float = 0.0) -> None:
        self.stack_shown = True

    def end(self, wait_s: float = 0.0) -> None:
        self.ended = True
        self.channel.close()


class FakeLauncher:
    """Starts the child that ``scripts`` has for a variant, or the one for all."""

    def __init__(self, script: Script, code: int | None = 0, **scripts: tuple[Script, int | None]) -> None:
        self._script, self._code, self._scripts = script, code, scripts
        self.started: dict[str, FakeChild] = {}

    def start(self, folder: Path) -> FakeChild:
        variant = read(folder / "request.json", VariantRequest).variant
        self.started[variant] = FakeChild(*self.script_of(variant))
        return self.started[variant]

    def script_of(self, variant: str) -> tuple[Script, int | None]:
        return self._scripts.get(variant.replace("-", "_"), (self._script, self._code))

    is_gone = False
    scratch: Path

    def exit_code(self, pid: int) -> int | None:
        return None

    def end_orphans(self) -> None: ...

    def close(self) -> None: ...


class NoSampler:
    """Sees nothing."""

    def begin(self, pid: int) -> None: ...

    def end(self) -> None: ...


def enter(channel: Channel, *phases: str) -> None:
    for phase in phases:
        channel.send(PhaseStarted(name=phase))


def get_warm(channel: Channel) -> None:
    enter(channel, "load", "build", "warm-up")
    channel.send(Warm(warm_up=WarmUp(first_step_ns=1, step_ns=(1, 1))))
    enter(channel, "measure")


def measure(channel: Channel, rate: float = 100.0, at_most: int = 1000) -> None:
    """Blocks of ten steps until the runner has enough, or that many."""
    for _ in range(at_most):
        channel.send(Ready())
        if isinstance(channel.receive(), Finish):
            return
        channel.send(Measured(block=block(rate)))


def whole(channel: Channel) -> None:
    """A child that ends normally."""
    get_warm(channel)
    measure(channel)
    enter(channel, "finish")
    channel.send(Found(resolved=Resolved(jit_compile=True), traces=1))
    channel.send(Done())


def untimed(channel: Channel) -> None:
    """A child that logs or traces, and ends by itself."""
    enter(channel, "load", "build", "finish")
    channel.send(Done())


def killed_after(channel: Channel, blocks: int) -> None:
    get_warm(channel)
    measure(channel, at_most=blocks)


def killed_after_two_blocks(channel: Channel) -> None:
    killed_after(channel, 2)


def silent(channel: Channel) -> None:
    channel.receive()  # until the runner hangs up


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., dict[str, VariantResult]]]:
    def run(
        launcher: FakeLauncher, *variants: str, observer: Any = None, **settings: Any
    ) -> dict[str, VariantResult]:
        defaults = {"steps": 30, "time_budget_s": None, "launches": 1}
        asked = plan(*(variants or ("baseline",)), **{**defaults, **settings})
        launcher.scratch = tmp_path / "scratch"
        try:
            results = runner.run(asked, tmp_path / "variants", observer or Silent(), launcher, NoSampler())
        except KeyboardInterrupt:
            pytest.fail("the interrupt left run()")
        assert tuple(result.id for result in results) == asked.variants
        for result in results:
            assert read(tmp_path / "variants" / result.id / "result.json", VariantResult) == result
        return {result.id: result for result in results}

    yield run


Run = Callable[..., dict[str, VariantResult]]


def test_a_child_that_ends_normally_is_measured(run: Run) -> None:
    launcher = FakeLauncher(whole)
    result = run(launcher)["baseline"]
    assert (result.status, result.failure) == ("measured", None)
    assert result.blocks == in_rounds([block(100.0)] * 5)
    assert result.warm_ups == (WarmUp(first_step_ns=1, step_ns=(1, 1)),)
    assert (result.resolved, result.traces) == (Resolved(jit_compile=True), 1)
    assert [phase.name for phase in result.phases] == [
        "start", "load", "build", "warm-up", "measure", "finish",
    ]  # fmt: skip
    assert launcher.started["baseline"].ended


def test_what_is_found_later_adds_to_what_was_found_before(run: Run) -> None:
    def twice(channel: Channel) -> None:
        channel.send(Found(resolved=Resolved(jit_compile=True)))
        channel.send(Found(traces=2))
        channel.send(Done())

    result = run(FakeLauncher(twice))["baseline"]
    assert (result.resolved, result.traces) == (Resolved(jit_compile=True), 2)


def test_the_child_is_told_its_variant_and_a_scratch_folder_that_goes_away(run: Run, tmp_path: Path) -> None:
    seen: list[bool] = []

    def look(channel: Channel) -> None:
        request = read(tmp_path / "variants" / "xla" / "request.json", VariantRequest)
        seen.append(Path(request.scratch).is_dir())
        channel.send(Done())

    run(FakeLauncher(whole, xla=(look, 0)), "baseline", "xla", seed=7)
    request = read(tmp_path / "variants" / "xla" / "request.json", VariantRequest)
    assert (request.variant, request.working_directory, request.seed) == ("xla", "/project", 7)
    assert request.folder == str(tmp_path / "variants" / "xla")
    assert seen == [True] and not Path(request.scratch).exists()


def test_a_child_killed_while_measuring_keeps_its_blocks(run: Run) -> None:
    result = run(FakeLauncher(killed_after_two_blocks, code=-9))["baseline"]
    assert result.status == "failed"
    assert result.blocks == in_rounds([block(100.0)] * 2)
    assert result.failure is not None
    assert (result.failure.phase, result.failure.kind) == ("measure", "killed")
    assert (result.failure.signal, result.failure.exit_code) == ("SIGKILL", -9)
    assert "the system may have run out of memory" in result.failure.message


def test_a_child_that_is_lost_with_what_started_it_is_not_the_targets_fault(run: Run) -> None:
    class Dying(FakeLauncher):
        def start(self, folder: Path) -> FakeChild:
            child = super().start(folder)
            child.is_lost = True
            return child

    failure = run(Dying(lambda channel: enter(channel, "load"), code=-9))["baseline"].failure
    assert failure is not None
    assert (failure.phase, failure.kind, failure.blames_target) == ("load", "lost", False)
    assert failure.message.startswith("The process that imports TensorFlow ended unexpectedly: ")


def test_a_child_that_just_ends_gave_no_result(run: Run) -> None:
    failure = run(FakeLauncher(lambda channel: enter(channel, "load"), code=0))["baseline"].failure
    assert failure is not None
    assert (failure.phase, failure.kind, failure.exit_code, failure.signal) == ("load", "no-result", 0, None)
    assert "exit code 0 in the phase 'load'" in failure.message


def test_what_a_child_says_of_its_own_failure_is_kept(run: Run) -> None:
    def fails(channel: Channel) -> None:
        enter(channel, "load", "build")
        channel.send(Failed(kind="raised", message="Training raised ValueError.", detail="train.py, line 3"))

    failure = run(FakeLauncher(fails, code=1))["baseline"].failure
    assert failure is not None
    assert (failure.phase, failure.kind) == ("build", "raised")
    assert (failure.message, failure.detail) == ("Training raised ValueError.", "train.py, line 3")


def test_the_end_of_its_stderr_is_kept_when_a_child_could_not_say_why(run: Run, tmp_path: Path) -> None:
    def crash(channel: Channel) -> None:
        (tmp_path / "variants" / "baseline" / "stderr.log").write_text("Fatal Python error: Aborted\n")

    failure = run(FakeLauncher(crash, code=-6))["baseline"].failure
    assert failure is not None
    assert (failure.signal, failure.detail) == ("SIGABRT", "Fatal Python error: Aborted\n")


def test_a_child_that_says_nothing_is_timed_out(run: Run) -> None:
    launcher = FakeLauncher(silent, code=None)
    failure = run(launcher, phase_timeout_s=0.2)["baseline"].failure
    assert failure is not None
    assert (failure.phase, failure.kind) == ("start", "timed-out")
    assert failure.message.startswith("train.py did not reach Model.fit within 0.2 s: ")
    assert launcher.started["baseline"].stack_shown and launcher.started["baseline"].ended


def test_a_child_that_hangs_while_measuring_is_timed_out_with_its_blocks(run: Run) -> None:
    def hangs(channel: Channel) -> None:
        killed_after_two_blocks(channel)
        channel.send(Ready())
        channel.receive()
        silent(channel)

    result = run(FakeLauncher(hangs, code=None), phase_timeout_s=0.3)["baseline"]
    assert result.failure is not None
    assert (result.failure.phase, result.failure.kind) == ("measure", "timed-out")
    assert result.failure.message == ("Nothing was heard for 0.3 s in the phase 'measure': raise --timeout.")
    assert len(result.blocks) == 2


def test_each_phase_has_the_whole_time_out(run: Run) -> None:
    def slow(channel: Channel) -> None:
        for phase in ("load", "build", "warm-up"):
            threading.Event().wait(0.25)
            enter(channel, phase)
        channel.send(Done())

    assert run(FakeLauncher(slow), phase_timeout_s=0.5)["baseline"].status == "measured"


def test_a_child_that_hangs_at_its_end_has_told_everything(run: Run) -> None:
    def lingers(channel: Channel) -> None:
        whole(channel)
        silent(channel)

    launcher = FakeLauncher(lingers, code=None)
    assert run(launcher, phase_timeout_s=5.0)["baseline"].status == "measured"
    assert launcher.started["baseline"].ended


def test_a_child_that_hangs_after_its_failure_keeps_the_reason(run: Run) -> None:
    def fails_and_hangs(channel: Channel) -> None:
        enter(channel, "load", "build")
        channel.send(Failed(kind="raised", message="Training raised ValueError."))
        silent(channel)

    failure = run(FakeLauncher(fails_and_hangs, code=None), phase_timeout_s=0.3)["baseline"].failure
    assert failure is not None and failure.kind == "raised"


def test_a_child_that_talks_nonsense_is_a_failure_like_any_other(run: Run) -> None:
    """The program shares a process with the socket, and may write to it or reuse its number."""

    def nonsense(channel: Channel) -> None:
        enter(channel, "load")
        channel.connection.send_bytes(b"hello")

    results = run(FakeLauncher(whole, xla=(nonsense, 0)), "baseline", "xla", "no-xla")
    assert results["xla"].failure is not None and results["xla"].failure.kind == "no-result"
    assert results["no-xla"].status == "measured"


def test_one_variant_that_fails_leaves_the_others(run: Run) -> None:
    launcher = FakeLauncher(whole, xla=(killed_after_two_blocks, -11))
    results = run(launcher, "baseline", "xla", "no-xla")
    assert [result.status for result in results.values()] == ["measured", "failed", "measured"]
    assert results["xla"].failure is not None and results["xla"].failure.signal == "SIGSEGV"


def test_what_would_fail_in_the_same_way_is_not_run(run: Run) -> None:
    """A target that does not load is loaded once."""

    def broken(channel: Channel) -> None:
        enter(channel, "load")
        channel.send(Failed(kind="raised", message="train.py raised RuntimeError."))

    launcher = FakeLauncher(broken, code=1)
    results = run(launcher, "baseline", "xla", "no-xla")
    assert list(launcher.started) == ["baseline"]
    for variant in ("xla", "no-xla"):
        failure = results[variant].failure
        assert results[variant].status == "not-run"
        assert failure is not None and failure.kind == "not-run"
        assert failure.message == "The baseline failed, and this would fail in the same way."


def test_a_launcher_that_cannot_start_children_is_a_failure(run: Run) -> None:
    class Gone(FakeLauncher):
        def start(self, folder: Path) -> FakeChild:
            raise MeasurementError("The process that imports TensorFlow ended unexpectedly.")

    failure = run(Gone(whole))["baseline"].failure
    assert failure is not None
    assert (failure.phase, failure.kind) == ("start", "no-result")
    assert failure.message == "The process that imports TensorFlow ended unexpectedly."


class Interrupting(Silent):
    """Presses Ctrl-C when the named thing is reported the given time."""

    def __init__(self, event: str, times: int = 1) -> None:
        self._left = times
        setattr(self, event, self._count)

    def _count(self, *_: Any) -> None:
        self._left -= 1
        if self._left == 0:
            raise KeyboardInterrupt


def interrupted(results: dict[str, VariantResult]) -> None:
    failure = results["baseline"].failure
    assert failure is not None and failure.kind == "interrupted"
    assert results["xla"].status == "not-run"
    assert results["xla"].failure is not None
    assert results["xla"].failure.message == "The audit was interrupted before it."


def test_an_interrupt_keeps_the_blocks_and_runs_nothing_more(run: Run) -> None:
    """Both variants were taking turns; the one that only logs had not begun."""
    launcher = FakeLauncher(whole)
    results = run(launcher, "baseline", "xla", "placement", observer=Interrupting("block_measured", 3))
    assert [len(result.blocks) for result in results.values()] == [1, 2, 0]
    failures = [result.failure for result in results.values()]
    assert [failure and (failure.phase, failure.kind) for failure in failures] == [
        ("measure", "interrupted"),
        ("measure", "interrupted"),
        ("start", "interrupted"),
    ]
    assert list(launcher.started) == ["baseline", "xla"]
    assert all(child.ended for child in launcher.started.values())


def test_timed_variants_take_turns_in_an_order_that_is_reversed(run: Run) -> None:
    turns: list[str] = []

    class Listening(Silent):
        def block_measured(self, variant: str, fraction: float, samples_per_s: float) -> None:
            turns.append(variant)

    run(FakeLauncher(whole), "baseline", "cached-input", "xla", observer=Listening())
    forth = ["baseline", "cached-input", "xla"]
    assert turns == [*forth, *forth[::-1], *forth, *forth[::-1], *forth]


def test_who_waits_is_frozen(run: Run) -> None:
    """Frozen when ready, thawed for each of five blocks and for the end, and frozen after each block."""
    launcher = FakeLauncher(whole)
    run(launcher, "baseline", "xla")
    turn = ["SIGCONT", "SIGSTOP"]
    for child in launcher.started.values():
        assert child.signals == ["SIGSTOP", *turn, *turn, *turn, *turn, *turn, "SIGCONT"]


def out_of_memory(channel: Channel) -> None:
    enter(channel, "load", "build")
    channel.send(Failed(kind="memory", message="Memory ran out."))


def test_what_did_not_fit_beside_the_others_is_measured_alone(run: Run) -> None:
    launcher = FakeLauncher(whole)
    attempts = iter([out_of_memory, whole])
    launcher._scripts["xla"] = (lambda channel: next(attempts)(channel), 0)
    results = run(launcher, "baseline", "xla")
    assert [results[name].status for name in ("baseline", "xla")] == ["measured", "measured"]
    assert (results["baseline"].alone, results["xla"].alone) == (False, True)
    assert results["xla"].notes == ("Measured on its own afterwards. Beside the others: Memory ran out.",)


def test_what_does_not_fit_beside_those_that_still_load_is_measured_alone(run: Run) -> None:
    """Memory runs out while no other is ready yet."""
    gone = threading.Event()

    def dies(channel: Channel) -> None:
        out_of_memory(channel)
        gone.set()

    def waits(channel: Channel) -> None:
        enter(channel, "load", "build")
        gone.wait(10.0)
        whole(channel)

    class DyingOnce(FakeLauncher):
        def script_of(self, variant: str) -> tuple[Script, int | None]:
            if variant == "baseline":
                return waits, 0
            return (whole if "xla" in self.started else dies), 0

    results = run(DyingOnce(whole), "baseline", "xla")
    assert {name: (result.status, result.alone) for name, result in results.items()} == {
        "baseline": ("measured", False),
        "xla": ("measured", True),
    }


def memory_runs_out_after_two_blocks(channel: Channel) -> None:
    killed_after_two_blocks(channel)
    channel.send(Failed(kind="memory", message="Memory ran out."))


@pytest.mark.parametrize(
    ("dies", "code", "again"),
    [(killed_after_two_blocks, -9, True), (memory_runs_out_after_two_blocks, 1, True),
     (killed_after_two_blocks, -11, False)],
)  # fmt: skip
def test_what_runs_out_of_memory_in_its_turns_is_measured_alone(
    run: Run, dies: Script, code: int, again: bool
) -> None:
    class DyingOnce(FakeLauncher):
        def script_of(self, variant: str) -> tuple[Script, int | None]:
            return (dies, code) if variant == "xla" and variant not in self.started else (whole, 0)

    results = run(DyingOnce(whole), "baseline", "xla")
    assert (results["xla"].alone, results["xla"].status == "measured") == (again, again)
    assert len(results["xla"].blocks) == (5 if again else 2)
    assert (results["baseline"].alone, len(results["baseline"].blocks)) == (False, 5)


def test_what_is_known_well_enough_when_it_is_killed_is_kept(run: Run) -> None:
    launcher = FakeLauncher(whole, xla=(lambda channel: killed_after(channel, FEWEST_BLOCKS), -9))
    result = run(launcher, "baseline", "xla", steps=200)["xla"]
    assert (result.alone, result.status, len(result.blocks)) == (False, "failed", FEWEST_BLOCKS)


def test_an_interrupt_while_the_program_loads(run: Run) -> None:
    interrupted(run(FakeLauncher(silent, code=None), "baseline", "xla", observer=Interrupting("waiting")))


def test_an_interrupt_as_a_variant_starts(run: Run) -> None:
    interrupted(run(FakeLauncher(whole), "baseline", "xla", observer=Interrupting("variant_started")))


def test_an_interrupt_between_two_variants(run: Run) -> None:
    """The timed ones took turns, so all of them are finished; the one that logs is not reached."""
    observer = Interrupting("variant_finished")
    results = run(FakeLauncher(whole), "baseline", "xla", "placement", observer=observer)
    assert [result.status for result in results.values()] == ["measured", "measured", "not-run"]
    assert [len(result.blocks) for result in results.values()] == [5, 5, 0]
    assert results["placement"].failure is not None
    assert results["placement"].failure.kind == "interrupted"


def test_the_observer_hears_of_everything_in_order(run: Run) -> None:
    told: list[tuple[Any, ...]] = []

    class Listening(Silent):
        def variant_started(self, variant: str) -> None:
            told.append(("started", variant))

        def phase_started(self, variant: str, phase: str) -> None:
            told.append((variant, phase))

        def block_measured(self, variant: str, fraction: float, samples_per_s: float) -> None:
            told.append((variant, round(fraction, 2), samples_per_s))

        def variant_finished(self, result: VariantResult) -> None:
            told.append(("finished", result.id, result.status))

    run(FakeLauncher(whole), observer=Listening())
    assert told == [
        ("started", "baseline"),
        ("baseline", "load"),
        ("baseline", "build"),
        ("baseline", "warm-up"),
        ("baseline", "measure"),
        *(("baseline", fraction, 100.0) for fraction in (0.2, 0.4, 0.6, 0.8, 1.0)),
        ("baseline", "finish"),
        ("finished", "baseline", "measured"),
    ]


# How long to measure --------------------------------------------------------------------------------


def blocks(count: int, seconds: float = 1.0, steps: int = 10) -> tuple[Block, ...]:
    return (Block(steps=steps, samples=100, duration_ns=round(seconds * 1e9), step_ns=()),) * count


def once(**settings: Any) -> Settings:
    """One launch, limited as given."""
    return Settings(launches=1, **settings)


def test_steps_alone_end_the_rounds() -> None:
    """Every variant must have had its steps."""
    asked = once(steps=60, time_budget_s=None)
    assert [progress(asked, [blocks(count)]) for count in (0, 3, 6, 9)] == [0.0, 0.5, 1.0, 1.0]
    assert progress(asked, [blocks(6), blocks(3)]) == 0.5


def test_few_steps_are_had_in_five_rounds_all_the_same() -> None:
    assert progress(once(steps=10, time_budget_s=None), [blocks(4)]) == 0.8


@pytest.mark.parametrize(("steps", "per_block"), [(1, 1), (10, 1), (11, 2), (100, 10), (1000, 100)])
def test_steps_are_had_in_ten_rounds(steps: int, per_block: int) -> None:
    """Longer blocks than asked for where a step is so short that what a freeze costs would count."""
    order = next_block(once(steps=steps, time_budget_s=None), 3)
    assert order == Go(settle_s=0.06, min_steps=per_block, min_duration_s=0.1)


def test_a_budget_is_shared_between_the_variants_that_take_turns() -> None:
    asked = once(time_budget_s=60.0)
    assert next_block(asked, 2) == Go(settle_s=0.06, min_steps=1, min_duration_s=3.0, max_duration_s=15.0)
    assert next_block(asked, 1) == Go(settle_s=0.06, min_steps=1, min_duration_s=6.0, max_duration_s=15.0)


def test_what_is_asked_for_is_shared_between_the_launches() -> None:
    asked = Settings(launches=2, time_budget_s=60.0)
    assert next_block(asked, 2) == Go(settle_s=0.06, min_steps=1, min_duration_s=1.5, max_duration_s=15.0)
    assert progress(asked, [blocks(10, seconds=1.5), blocks(10, seconds=1.5)]) == 1.0
    assert progress(Settings(launches=2, steps=100, time_budget_s=None), [blocks(5)]) == 1.0


def test_the_time_of_all_variants_ends_the_rounds() -> None:
    asked = once(time_budget_s=60.0)
    assert progress(asked, [blocks(10, seconds=1.5), blocks(10, seconds=1.5)]) == 0.5
    assert progress(asked, [blocks(20, seconds=1.5), blocks(20, seconds=1.5)]) == 1.0


def test_a_few_blocks_are_had_although_the_time_is_spent() -> None:
    """A budget of 3 s, blocks of 2 s: the fifth ends it, since five count."""
    asked = once(time_budget_s=3.0)
    counts = (2, 4, 5)
    assert [progress(asked, [blocks(n, seconds=2.0)]) for n in counts] == pytest.approx([0.4, 0.8, 1.0])


def test_a_few_blocks_are_not_had_at_any_price() -> None:
    """A budget of 3 s, blocks of 11 s: after four budgets it is over whatever was had."""
    asked = once(time_budget_s=3.0)
    assert progress(asked, [blocks(1, seconds=11.0)]) == pytest.approx(0.2)
    assert progress(asked, [blocks(2, seconds=11.0)]) == 1.0
    assert progress(asked, [blocks(1, seconds=12.0)]) == 1.0


def test_with_both_limits_the_first_reached_ends_it() -> None:
    asked = once(steps=60, time_budget_s=10.0)
    assert next_block(asked, 1) == Go(settle_s=0.06, min_steps=6, min_duration_s=0.1, max_duration_s=2.5)
    assert progress(asked, [blocks(6, seconds=1.0)]) == 1.0
    assert progress(asked, [blocks(5, seconds=2.0)]) == 1.0
    assert progress(asked, [blocks(3, seconds=1.0)]) == 0.5


STEADY, LOOSE, SLOW = [1.0] * 6, [1.0, 2.0] * 3, [2.0, 2.4] * 3


def rounds(seconds: list[float]) -> tuple[Block, ...]:
    return in_rounds(blocks(1, seconds=each)[0] for each in seconds)


@pytest.mark.parametrize(
    ("seconds", "launches", "known"),
    [
        (STEADY, 2, True),
        (STEADY[:5], 2, True),
        (STEADY[:4], 2, False),  # too few to tell that they are steady
        (LOOSE, 2, False),
        (SLOW[:3], 2, True),  # half as fast: it may be 0.4 or 0.5
        (SLOW[:2], 2, False),
        (SLOW[:3], 1, False),
        (SLOW[:5], 1, True),
    ],
)
def test_a_variant_leaves_the_rounds_when_enough_is_known(
    seconds: list[float], launches: int, known: bool
) -> None:
    """Its ratio to a baseline whose rounds take a second each."""
    asked = Settings(launches=launches)
    assert is_known(asked, rounds(seconds), rounds([1.0] * len(seconds))) is known


def test_rounds_go_on_without_those_that_are_known_and_end_when_all_are(run: Run) -> None:
    """xla runs at half the rate, and no-xla wavers until it has had seven blocks."""

    def slow(channel: Channel) -> None:
        get_warm(channel)
        measure(channel, rate=50.0)
        channel.send(Done())

    def wavering(channel: Channel) -> None:
        get_warm(channel)
        for rate in (100.0, 130.0, 100.0, 130.0, 100.0, 130.0, *[115.0] * 94):
            channel.send(Ready())
            if isinstance(channel.receive(), Finish):
                break
            channel.send(Measured(block=block(rate)))
        channel.send(Done())

    launcher = FakeLauncher(whole, xla=(slow, 0), no_xla=(wavering, 0))
    results = run(launcher, "baseline", "xla", "no-xla", steps=None, time_budget_s=10_000.0)
    counts = {name: len(result.blocks) for name, result in results.items()}
    assert counts["xla"] == 5
    assert 7 <= counts["no-xla"] == counts["baseline"] < 100


# Launches -------------------------------------------------------------------------------------------


def test_every_timed_variant_is_launched_again_with_its_launch_as_seed(run: Run, tmp_path: Path) -> None:
    seen: list[int] = []

    def look(channel: Channel) -> None:
        enter(channel, "load")
        requests = (read(path, VariantRequest) for path in (tmp_path / "variants").glob("*/request.json"))
        seen.append(max(request.launch for request in requests))
        whole(channel)

    results = run(FakeLauncher(look, placement=(untimed, 0)), "baseline", "placement", launches=2)
    assert seen == [0, 1]
    launches = [block.launch for block in results["baseline"].blocks]
    assert launches == sorted(launches) and set(launches) == {0, 1}
    assert len(results["baseline"].warm_ups) == 2
    assert results["placement"].status == "measured"


def test_a_variant_that_fails_in_its_second_launch_keeps_the_first(run: Run) -> None:
    lives = iter([whole, killed_after_two_blocks])
    launcher = FakeLauncher(whole, xla=(lambda channel: next(lives)(channel), -9))
    result = run(launcher, "baseline", "xla", launches=2)["xla"]
    assert result.failure is not None and result.failure.message.startswith("When it was started again: ")
    assert [block.launch for block in result.blocks] == [0, 0, 0, 1, 1]


def test_a_baseline_that_fails_in_its_second_launch_ends_the_timing_and_no_more(run: Run) -> None:
    def cannot_load(channel: Channel) -> None:
        enter(channel, "load")
        channel.send(Failed(kind="raised", message="train.py raised OSError."))

    lives = iter([whole, cannot_load])
    again = (lambda channel: next(lives)(channel), 0)
    launcher = FakeLauncher(whole, baseline=again, placement=(untimed, 0))
    results = run(launcher, "baseline", "xla", "placement", launches=2)
    assert results["baseline"].failure is not None and len(results["baseline"].blocks) == 3
    assert [results[name].status for name in ("xla", "placement")] == ["measured", "measured"]
    assert {block.launch for block in results["xla"].blocks} == {0}


def test_an_interrupt_in_the_second_launch_keeps_the_first_and_says_so(run: Run) -> None:
    results = run(
        FakeLauncher(whole), "baseline", "xla", launches=2, observer=Interrupting("block_measured", 8)
    )
    assert [len(result.blocks) for result in results.values()] == [4, 4]
    assert [result.failure and result.failure.kind for result in results.values()] == ["interrupted"] * 2


def test_what_the_machine_does_not_hold_is_not_started_beside_the_others(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "has_room", lambda beside: False)
    results = run(FakeLauncher(whole), "baseline", "xla", "no-xla")
    assert [result.alone for result in results.values()] == [False, True, True]
    assert all(len(result.blocks) == 5 for result in results.values())


def test_a_child_in_need_of_more_than_is_available_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    class Large(Attempt):
        def __init__(self) -> None: ...

        def memory_bytes(self) -> int:
            return 4 << 30

    for available, room in ((5 << 30, True), ((5 << 30) - 1, False)):
        monkeypatch.setattr(runner.machine, "available_memory_bytes", lambda available=available: available)
        assert runner.has_room([Large()]) is room


# Words ----------------------------------------------------------------------------------------------

ENDINGS = [
    (-9, "SIGKILL", "killed by SIGKILL in the phase 'load': the system may have run out of memory."),
    (-11, "SIGSEGV", "killed by SIGSEGV in the phase 'load'."),
    (-64, "SIGRTMAX", "killed by SIGRTMAX in the phase 'load'."),
    (-200, "signal 200", "killed by signal 200 in the phase 'load'."),
    (0, None, "exit code 0 in the phase 'load' without a result: the program may call os._exit."),
    (3, None, "exit code 3 in the phase 'load' without a result: the program may call os._exit."),
]


@pytest.mark.parametrize(("code", "name", "words"), ENDINGS)
def test_how_a_child_ended_is_one_sentence(code: int, name: str | None, words: str) -> None:
    sentence, signal = how_it_ended(code, "load")
    assert signal == name
    assert sentence.endswith(words)


def test_a_short_log_is_kept_whole(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("one\ntwo\n")
    assert tail(tmp_path / "log") == "one\ntwo\n"


def test_of_a_long_log_the_last_whole_lines_are_kept(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("".join(f"line {number}\n" for number in range(10_000)))
    kept = tail(tmp_path / "log")
    assert len(kept) <= TAIL_BYTES
    assert kept.startswith("line ") and kept.endswith("line 9999\n")


def test_of_one_endless_line_the_end_is_kept(tmp_path: Path) -> None:
    """A progress bar may write a megabyte of carriage returns and no newline."""
    (tmp_path / "log").write_text("x" * 100_000 + " the end")
    assert tail(tmp_path / "log").endswith(" the end")


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert tail(tmp_path / "log") == ""


def test_bytes_in_a_log_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"\xff boom\n")
    assert tail(tmp_path / "log") == "\ufffd boom\n"

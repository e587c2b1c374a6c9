"""Running the variants of a plan, each in its own child; whatever happens, each gives a result."""

from __future__ import annotations

import contextlib
import math
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from .errors import MeasurementError
from .evidence import FEWEST_BLOCKS
from .launch import Child, Launcher
from .records import (
    Block,
    Failure,
    Phase,
    Plan,
    VariantRequest,
    VariantResult,
    write,
)
from .session import Done, Failed, Finish, Found, Go, Measured, PhaseStarted, Ready, Warm
from .variants import VARIANTS

#: A variant's share of the budget is measured in about that many blocks. The fewest that count must be
#: had, unless that takes more than so many shares.
BLOCKS, LONGEST_SHARES = 20, 4.0

#: How much of a child's stderr goes into its failure record.
TAIL_BYTES = 4000


class Observer(Protocol):
    """Told of progress; the command line shows it."""

    def variant_started(self, variant: str) -> None: ...

    def phase_started(self, variant: str, phase: str) -> None: ...

    def waiting(self, variant: str, phase: str, elapsed_s: float, limit_s: float) -> None: ...

    def block_measured(self, variant: str, fraction: float, samples_per_s: float) -> None: ...

    def variant_finished(self, result: VariantResult) -> None: ...


def run(plan: Plan, folder: Path, observer: Observer, launcher: Launcher) -> tuple[VariantResult, ...]:
    """Run every variant of ``plan`` into a folder of its own in ``folder``; return results in that order.

    An interrupt ends the run, not the report: what follows is recorded as not run.
    """
    results: list[VariantResult] = []
    interrupted = False
    scratch = Path(tempfile.mkdtemp(prefix="tfaudit-"))
    try:
        for variant in plan.variants:
            launch = Launch(plan, variant, folder / variant, scratch, observer)
            try:
                if interrupted:
                    launch.result = not_run(variant, NOT_REACHED, "interrupted")
                elif _stops_all(results):
                    launch.result = not_run(variant, SAME_FAILURE)
                else:
                    launch.run(launcher)
            except KeyboardInterrupt:
                interrupted = True
                launch.interrupted()
            results.append(launch.end())
            launch.folder.mkdir(parents=True, exist_ok=True)
            write(launch.folder / "result.json", results[-1])
            try:
                observer.variant_finished(results[-1])
            except KeyboardInterrupt:
                interrupted = True
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return tuple(results)


NOT_REACHED = "The audit was interrupted before it."
SAME_FAILURE = "The baseline failed, and this would fail in the same way."


def _stops_all(results: list[VariantResult]) -> bool:
    """Whether the baseline, the first to run, could not even start or load."""
    failure = results[0].failure if results else None
    return failure is not None and (failure.phase == "start" or failure.blames_target)


def not_run(variant: str, reason: str, kind: str = "not-run") -> VariantResult:
    """The record of a variant that was never started."""
    failure = Failure(phase="start", kind=kind, message=reason)
    return VariantResult(id=variant, status="not-run", failure=failure)


class Launch:
    """One variant's child, from its start to its end, and the result that grows with what it tells."""

    def __init__(self, plan: Plan, variant: str, folder: Path, scratch: Path, observer: Observer) -> None:
        self.result = VariantResult(id=variant, status="failed")
        self.folder = folder
        self._plan, self._variant = plan, variant
        self._scratch = scratch / variant
        self._observer = observer
        self._child: Child | None = None
        self._phase, self._phase_began = "start", time.monotonic()
        self._ready = self._done = False

    def run(self, launcher: Launcher) -> None:
        """Start the child, measure block after block, and hear it to its end."""
        self._observer.variant_started(self._variant)
        try:
            self.start(launcher)
        except MeasurementError as error:
            self._failed("no-result", str(error))
            return
        while self.until_ready():
            self.tell(next_order(self._plan, self.result.blocks))

    def start(self, launcher: Launcher) -> None:
        """Write the request and start the child."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._scratch.mkdir(parents=True)
        request = VariantRequest(
            variant=self._variant,
            target=self._plan.target,
            working_directory=self._plan.working_directory,
            folder=str(self.folder),
            scratch=str(self._scratch),
            seed=self._plan.settings.seed,
            warm_up_s=self._plan.settings.warm_up_s,
        )
        write(self.folder / "request.json", request)
        self._child = launcher.start(self.folder)

    def tell(self, order: Go | Finish) -> None:
        """Answer a child that is ready."""
        assert self._child is not None
        self._ready = False
        self._phase_began = time.monotonic()
        with contextlib.suppress(OSError):  # it is gone; hearing it to its end will say how
            self._child.channel.send(order)

    def until_ready(self) -> bool:
        """Hear the child until it waits for an order; False when it has ended instead."""
        while not self._ready:
            if not self._hear():
                return False
        return True

    def _hear(self) -> bool:
        """Take in one message, or let a moment pass; False once the child has ended."""
        child = self._child
        assert child is not None
        limit_s = self._plan.settings.phase_timeout_s
        elapsed_s = time.monotonic() - self._phase_began
        try:
            if child.channel.poll(0.1):
                self._take(child.channel.receive())
                return True
        except msgspec.MsgspecError:
            self._failed("no-result", "The child's messages cannot be read: its socket was written to.")
            return False
        except (EOFError, OSError):
            time.sleep(0.02)
            if child.exit_code() is None and not self._done and elapsed_s < limit_s:
                return True
        if child.exit_code() is not None:
            return self._drain()
        if self._done:
            return False
        if elapsed_s > limit_s:
            child.show_stack()
            self._failed("timed-out", self._too_long(limit_s))
            return False
        self._observer.waiting(self._variant, self._phase, elapsed_s, limit_s)
        return True

    def _drain(self) -> bool:
        """The child is gone; take what it said last, then judge how it ended."""
        assert self._child is not None
        with contextlib.suppress(EOFError, OSError, msgspec.MsgspecError):
            while self._child.channel.poll(0):
                self._take(self._child.channel.receive())
        if not self._done and self.result.failure is None:
            code = self._child.exit_code() or 0
            message, name = how_it_ended(code, self._phase)
            kind = "killed" if code < 0 else "no-result"
            self._failed(kind, message, exit_code=code, signal_name=name)
        return False

    def _take(self, message: Any) -> None:
        if isinstance(message, PhaseStarted):
            self._close_phase()
            self._phase = message.name
            self._observer.phase_started(self._variant, message.name)
        elif isinstance(message, Found):
            found = {
                name: value
                for name in message.__struct_fields__
                if (value := getattr(message, name)) is not None
            }
            self.result = replace(self.result, **found)
        elif isinstance(message, Warm):
            self.result = replace(self.result, warm_up=message.warm_up)
        elif isinstance(message, Measured):
            self._take_block(message.block)
        elif isinstance(message, Ready):
            self._ready = True
        elif isinstance(message, Failed):
            self._failed(message.kind, message.message, message.detail)
        elif isinstance(message, Done):
            self._done = True
            self._close_phase()
            self.result = replace(self.result, status="measured")

    def _take_block(self, block: Block) -> None:
        self.result = replace(self.result, blocks=(*self.result.blocks, block))
        rate = block.samples / block.duration_ns * 1e9 if block.duration_ns else 0.0
        fraction = progress(self._plan, self.result.blocks)
        self._observer.block_measured(self._variant, fraction, rate)

    def _close_phase(self) -> None:
        now = time.monotonic()
        phase = Phase(name=self._phase, duration_s=now - self._phase_began)
        self.result = replace(self.result, phases=(*self.result.phases, phase))
        self._phase_began = now

    def _failed(
        self,
        kind: str,
        message: str,
        detail: str | None = None,
        exit_code: int | None = None,
        signal_name: str | None = None,
    ) -> None:
        if self.result.failure is not None:
            return  # what the child said first says most
        failure = Failure(
            phase=self._phase,
            kind=kind,
            message=message,
            detail=self._stderr_tail() if detail is None else detail,
            exit_code=exit_code,
            signal=signal_name,
        )
        self.result = replace(self.result, failure=failure)

    def interrupted(self) -> None:
        """Note that the run was stopped while this variant was under way."""
        self._failed("interrupted", "The audit was interrupted here.", detail="")

    def _too_long(self, limit_s: float) -> str:
        name = self._plan.target.name
        limit = f"{limit_s:g} s"
        if self._phase in ("start", "load"):
            return (
                f"{name} did not reach Model.fit within {limit}: if it trains in a loop of its own,"
                " name a factory that returns tfaudit.Job(model, dataset, train_step); if it only"
                " needs longer, raise --timeout."
            )
        return f"Nothing was heard for {limit} in the phase {self._phase!r}: raise --timeout."

    def _stderr_tail(self) -> str:
        return tail(self.folder / "stderr.log")

    def end(self) -> VariantResult:
        """End the child and all that it started; return what is known."""
        if self._child is not None:
            self._child.end()
        shutil.rmtree(self._scratch, ignore_errors=True)
        return self.result


def tail(path: Path) -> str:
    """The last lines of a log; empty when there is none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return text.partition("\n")[2] or text if size > TAIL_BYTES else text


def how_it_ended(code: int, phase: str) -> tuple[str, str | None]:
    """A sentence on a child that ended without a result, and the signal's name if there was one."""
    if code >= 0:
        return (
            f"The process ended with exit code {code} in the phase {phase!r} without a result:"
            " the program may call os._exit.",
            None,
        )
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = ": the system may have run out of memory" if name == "SIGKILL" else ""
    return f"The process was killed by {name} in the phase {phase!r}{hint}.", name


# --------------------------------------------------------------------------------------------------
# How long to measure


def next_order(plan: Plan, blocks: tuple[Block, ...]) -> Go | Finish:
    """What a variant that is measured on its own should do next, after those blocks."""
    if progress(plan, blocks) >= 1.0:
        return Finish()
    steps, share = plan.settings.steps, share_s(plan)
    return Go(
        min_steps=max(1, math.ceil((steps or 0) / BLOCKS)),
        min_duration_s=share / BLOCKS if share and not steps else 0.0,
    )


def share_s(plan: Plan) -> float | None:
    """Seconds of measuring per timed variant; None when only steps limit it."""
    timed = sum(VARIANTS[variant].purpose == "time" for variant in plan.variants)
    budget_s = plan.settings.time_budget_s
    return None if budget_s is None else budget_s / max(1, timed)


def progress(plan: Plan, blocks: tuple[Block, ...]) -> float:
    """How much of a variant's measuring is done, from 0 to 1.

    It ends with the steps asked for or with its share of the time, whichever comes first; without
    ``--steps`` not before a few blocks were had, unless these would take several shares.
    """
    steps, share = plan.settings.steps, share_s(plan)
    elapsed_s = sum(block.duration_ns for block in blocks) / 1e9
    done = 0.0
    if steps is not None:
        done = sum(block.steps for block in blocks) / steps
    if share is not None:
        part = elapsed_s / share
        enough = steps is not None or part >= LONGEST_SHARES
        done = max(done, part if enough else min(part, len(blocks) / FEWEST_BLOCKS))
    return min(1.0, done)

"""One variant's child: hearing it, telling it what to do, and the result that grows with what it says."""

from __future__ import annotations

import contextlib
import shutil
import signal
import time
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from .errors import MeasurementError
from .launch import GONE, Child, Launcher
from .records import Block, Failure, Phase, Plan, Usage, VariantRequest, VariantResult, write
from .session import Done, Failed, Finish, Found, Go, Measured, PhaseStarted, Ready, Warm

#: How much of a child's stderr goes into its failure record.
TAIL_BYTES = 4000

ALONE = "Measured on its own afterwards."
NO_ROOM = "Memory did not hold it beside the others."


class Observer(Protocol):
    """Told of progress; the command line shows it."""

    def stage_started(self, text: str) -> None: ...

    def variant_started(self, variant: str) -> None: ...

    def phase_started(self, variant: str, phase: str) -> None: ...

    def waiting(self, variant: str, phase: str, elapsed_s: float, limit_s: float) -> None: ...

    def block_measured(self, variant: str, fraction: float, samples_per_s: float) -> None: ...

    def variant_finished(self, result: VariantResult) -> None: ...


class Attempt:
    """One variant's children, one launch after another, and the result that grows with what they tell.

    `start` a launch, `hear` it until it `is_ready`, and then as often as is wanted `measure` a block and be
    ready again; in between it is frozen. `finish` or `stop` ends the launch, `end` the variant, in any case.
    """

    def __init__(self, plan: Plan, variant: str, folder: Path, scratch: Path, observer: Observer) -> None:
        self.result = VariantResult(id=variant, status="failed")
        self.folder = folder
        self.variant = variant
        self._plan = plan
        self._scratch = scratch / variant
        self._observer = observer
        self._child: Child | None = None
        self._launch = self._round = 0
        self._phase, self._phase_began = "start", time.monotonic()
        self._measuring_s = 0.0
        self._done = False
        self.is_ready = self.started = self.ended = False

    def start(self, launcher: Launcher, launch: int = 0) -> None:
        """Write the request and start the child of that launch."""
        if not self.started:
            self._observer.variant_started(self.variant)
        self.started = True
        self._launch = launch
        self._phase, self._phase_began = "start", time.monotonic()
        self._done = self.is_ready = False
        self._measuring_s = 0.0
        self.folder.mkdir(parents=True, exist_ok=True)
        self._scratch.mkdir(parents=True, exist_ok=True)
        request = VariantRequest(
            variant=self.variant,
            target=self._plan.target,
            working_directory=self._plan.working_directory,
            folder=str(self.folder),
            scratch=str(self._scratch),
            seed=self._plan.settings.seed,
            warm_up_s=self._plan.settings.warm_up_s,
            launch=launch,
        )
        write(self.folder / "request.json", request)
        try:
            self._child = launcher.start(self.folder)
        except MeasurementError as error:
            self.fail("no-result", str(error))

    @property
    def pid(self) -> int:
        """The child's process; 0 when there is none."""
        return self._child.pid if self._child else 0

    @property
    def connection(self) -> Any:
        """What to wait on for the child's next message; None without a child."""
        return self._child.channel.connection if self._child else None

    @property
    def is_under_way(self) -> bool:
        """Whether a launch has begun and not told everything yet."""
        return self._child is not None and not self._done

    @property
    def has_loaded(self) -> bool:
        """Whether the user's program got as far as its job."""
        return self._phase not in ("start", "load")

    def memory_bytes(self) -> int:
        """What the child holds now."""
        return self._child.memory_bytes() if self._child else 0

    def measure(self, order: Go, round: int) -> bool:
        """Have the frozen child measure one block and freeze it again; False when it has ended instead.

        The order is there before the child wakes, so that nothing runs ahead of the clock.
        """
        self._round = round
        began = time.monotonic()
        self.tell(order)
        self.thaw()
        went_well = self.until_ready()
        if went_well:
            self.freeze()
        self._measuring_s += time.monotonic() - began
        return went_well

    def ask_to_finish(self) -> None:
        """Have the child measure no more."""
        self.tell(Finish())
        self.thaw()

    def finish(self) -> None:
        """Hear a child that was asked to finish to its end, and let it go."""
        while self.until_ready():
            self.tell(Finish())
        self.stop()

    def start_over(self) -> None:
        """Forget what was had beside others, where memory did not suffice, before it is started alone."""
        self.stop()
        failure = self.result.failure
        why = f"Beside the others: {failure.message}" if failure else NO_ROOM
        self.result = VariantResult(id=self.variant, status="failed", alone=True, notes=(f"{ALONE} {why}",))

    def freeze(self) -> None:
        """Stop the child and what it started, so that it neither computes nor fills its buffers."""
        if self._child is not None:
            self._child.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen child go on."""
        if self._child is not None:
            self._child.signal(signal.SIGCONT)

    def tell(self, order: Go | Finish) -> None:
        """Answer a child that is ready."""
        assert self._child is not None
        self.is_ready = False
        self._phase_began = time.monotonic()
        with contextlib.suppress(OSError):  # it is gone; hearing it to its end will say how
            self._child.channel.send(order)

    def until_ready(self) -> bool:
        """Hear the child until it waits for an order; False when it has ended instead."""
        while not self.is_ready:
            if not self.hear():
                return False
        return True

    def hear(self, wait_s: float = 0.1) -> bool:
        """Take in one message, or let a moment pass; False once the child has ended."""
        child = self._child
        if child is None:
            return False
        limit_s = self._plan.settings.phase_timeout_s
        elapsed_s = time.monotonic() - self._phase_began
        try:
            if child.channel.poll(wait_s):
                self._take(child.channel.receive())
                return True
        except msgspec.MsgspecError:
            self.fail("no-result", "The child's messages cannot be read: its socket was written to.")
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
            self.fail("timed-out", self._too_long(limit_s))
            return False
        self._observer.waiting(self.variant, self._phase, elapsed_s, limit_s)
        return True

    def _drain(self) -> bool:
        """The child is gone; take what it said last, then judge how it ended."""
        assert self._child is not None
        with contextlib.suppress(EOFError, OSError, msgspec.MsgspecError):
            while self._child.channel.poll(0):
                self._take(self._child.channel.receive())
        if not self._done and self.result.failure is None:
            if self._child.is_lost:
                self.fail("lost", GONE)
                return False
            code = self._child.exit_code() or 0
            message, name = how_it_ended(code, self._phase)
            kind = "killed" if code < 0 else "no-result"
            self.fail(kind, message, exit_code=code, signal_name=name)
        return False

    def _take(self, message: Any) -> None:
        if isinstance(message, PhaseStarted):
            self._close_phase()
            self._phase = message.name
            self._observer.phase_started(self.variant, message.name)
        elif isinstance(message, Found):
            found = {
                name: value
                for name in message.__struct_fields__
                if (value := getattr(message, name)) is not None
            }
            self.result = replace(self.result, **found)
        elif isinstance(message, Warm):
            self.result = replace(self.result, warm_ups=(*self.result.warm_ups, message.warm_up))
        elif isinstance(message, Measured):
            self._take_block(message.block)
        elif isinstance(message, Ready):
            self.is_ready = True
        elif isinstance(message, Failed):
            self.fail(message.kind, message.message, message.detail)
        elif isinstance(message, Done):
            self._done = True
            self._close_phase()
            self.result = replace(self.result, status="measured")

    def _take_block(self, block: Block) -> None:
        placed = replace(block, launch=self._launch, round=self._round)
        self.result = replace(self.result, blocks=(*self.result.blocks, placed))

    def note_usage(self, usage: Usage) -> None:
        """Put what the machine did meanwhile with the block just measured."""
        if self.result.blocks and self.result.blocks[-1].round == self._round:
            last = replace(self.result.blocks[-1], usage=usage)
            self.result = replace(self.result, blocks=(*self.result.blocks[:-1], last))

    def _close_phase(self) -> None:
        now = time.monotonic()
        # A child that measures is frozen most of the time, which is no time of its own.
        duration_s = self._measuring_s if self._phase == "measure" else now - self._phase_began
        phase = Phase(name=self._phase, duration_s=duration_s)
        self.result = replace(self.result, phases=(*self.result.phases, phase))
        self._phase_began = now

    def fail(
        self,
        kind: str,
        message: str,
        detail: str | None = None,
        exit_code: int | None = None,
        signal_name: str | None = None,
    ) -> None:
        """Note why this variant gave no full result; what was noted first says most."""
        if self.result.failure is not None:
            return
        failure = Failure(
            phase=self._phase,
            kind=kind,
            message=f"When it was started again: {message}" if self._launch else message,
            detail=self._stderr_tail() if detail is None else detail,
            exit_code=exit_code,
            signal=signal_name,
        )
        self.result = replace(self.result, status="failed", failure=failure)

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

    def stop(self) -> None:
        """End the child and all that it started, and write down what is known."""
        if self._child is not None:
            self._child.end()
            self._child = None
        shutil.rmtree(self._scratch, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        write(self.folder / "result.json", self.result)

    def end(self) -> None:
        """Nothing more will be had of this variant."""
        if self.ended:
            return
        self.ended = True
        self.stop()
        self._observer.variant_finished(self.result)


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

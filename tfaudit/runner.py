"""Running the variants of a plan, each in its own child; whatever happens, each gives a result.

Variants that are timed live side by side and take turns in short blocks, all but one frozen. A machine
that drifts, or is busy with something else for a while, then slows them all alike, and their ratios
within a round hold. Each is launched more than once: what differs from one process to the next, such as where
its memory lies, is no effect of a variant.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Protocol

from . import machine
from .attempt import Attempt, Observer
from .evidence import FEWEST_BLOCKS, timed_blocks
from .launch import Launcher
from .records import Block, Failure, Plan, Settings, Usage, VariantResult
from .session import Go
from .statistics import paired_ratio_interval
from .variants import VARIANTS

#: A launch's part of the budget is spent in about that many rounds. The fewest blocks that count must be had,
#: unless that takes more than so many budgets.
ROUNDS, MOST_BUDGETS = 10, 4.0

#: A variant's rounds end early when its ratio to the baseline is known to within this fraction of it, or,
#: after the fewest rounds, when it is clearly no more than so fast.
NARROW_ENOUGH, CLEARLY_SLOWER = 0.025, 0.8

#: So many children load at once where they share no accelerator. On one, kernels are chosen by timing them,
#: which another process would disturb.
MOST_LOADING = 4

#: A child is started beside others only while so many times the memory of the largest is available.
SPARE_MEMORY = 1.25

NOT_REACHED = "The audit was interrupted before it."
SAME_FAILURE = "The baseline failed, and this would fail in the same way."


class Sampler(Protocol):
    """Tells what the machine did between two moments; `tfaudit.sampling.Sampler` does."""

    def begin(self, pid: int) -> None: ...

    def end(self) -> Usage: ...


def run(
    plan: Plan, folder: Path, observer: Observer, launcher: Launcher, sampler: Sampler
) -> tuple[VariantResult, ...]:
    """Run every variant of ``plan`` into a folder of its own in ``folder``; return results in that order.

    An interrupt ends the run, not the report: what follows is recorded as not run.
    """
    attempts = [Attempt(plan, name, folder / name, launcher.scratch, observer) for name in plan.variants]
    try:
        Run(plan, launcher, observer, sampler).measure(attempts)
    except KeyboardInterrupt:
        for attempt in attempts:
            interrupt(attempt)
    finally:
        for attempt in attempts:
            with contextlib.suppress(OSError):  # a full disk keeps no child alive; the report will say it
                attempt.end()
    return tuple(attempt.result for attempt in attempts)


class Run:
    """Which child does what when. ``attempts[0]`` is the baseline."""

    def __init__(self, plan: Plan, launcher: Launcher, observer: Observer, sampler: Sampler) -> None:
        self._settings = plan.settings
        self._launcher, self._observer, self._sampler = launcher, observer, sampler

    def measure(self, attempts: Sequence[Attempt]) -> None:
        """Time the variants that are to be timed in turns; run the others one after another."""
        timed = [attempt for attempt in attempts if VARIANTS[attempt.variant].purpose == "time"]
        for launch in range(self._settings.launches):
            going = [attempt for attempt in timed if attempt.result.failure is None]
            if attempts[0] not in going:
                break
            self._time(going, launch)
        for attempt in timed:
            if not stops_all(attempts[0]) or attempt is attempts[0]:
                attempt.end()
        for attempt in attempts:
            if stops_all(attempts[0]):
                skip(attempt, SAME_FAILURE)
            elif attempt not in timed:
                self._observer.stage_started(attempt.variant)
                attempt.start(self._launcher)
                attempt.until_ready()
            attempt.end()

    def _time(self, attempts: Sequence[Attempt], launch: int) -> None:
        which = f"launch {launch + 1} of {self._settings.launches}" if self._settings.launches > 1 else ""
        self._observer.stage_started(f"{which}: loading".strip(": "))
        together = [attempt for attempt in attempts if not attempt.result.alone]
        crowded = [attempt for attempt in attempts if attempt.result.alone]
        ready = self._bring_up(together, crowded, launch)
        self._observer.stage_started(f"{which}: taking turns".strip(": "))
        self._take_turns(ready, crowded, launch)
        for attempt in crowded:
            if not attempt.result.alone:
                attempt.start_over()
            self._take_turns(self._bring_up([attempt], [], launch), [], launch)

    def _bring_up(self, attempts: Sequence[Attempt], crowded: list[Attempt], launch: int) -> list[Attempt]:
        """Start a launch of each and return those that are warm, frozen.

        What memory does not hold beside the others is left to ``crowded``. The first is alone until the
        user's program has loaded, which it may not.
        """
        waiting, loading, ready = list(attempts), list[Attempt](), list[Attempt]()
        while waiting or loading:
            while waiting and len(loading) < loading_at_once(attempts[0], launch):
                beside = [*ready, *loading]
                if beside and not has_room(beside):
                    if loading:
                        break
                    crowded += [] if launch else waiting  # a launch fewer is better than one on its own
                    waiting.clear()
                    break
                loading.append(waiting.pop(0))
                loading[-1].start(self._launcher, launch)
            wait([attempt.connection for attempt in loading if attempt.connection], timeout=0.1)
            for attempt in list(loading):
                if attempt.hear(wait_s=0.0) and not attempt.is_ready:
                    continue
                loading.remove(attempt)
                if attempt.is_ready:
                    attempt.freeze()
                    ready.append(attempt)
                else:
                    attempt.stop()
                    if (ready or loading) and not launch and may_be_crowded(attempt.result):
                        crowded.append(attempt)
            if stops_all(attempts[0]) or (launch and attempts[0].result.failure):
                for attempt in [*loading, *ready]:
                    attempt.stop()
                return []
        return sorted(ready, key=attempts.index)

    def _take_turns(self, ready: Sequence[Attempt], crowded: list[Attempt], launch: int) -> None:
        """Measure block after block of each, in an order that is reversed every round.

        Whose memory did not suffice beside the others is left to ``crowded``, unless enough of it is known.
        """
        alive = list(ready)
        order = next_block(self._settings, len(alive))
        number = 0
        while turns := self._turns(alive, launch):
            for attempt in turns[:: -1 if number % 2 else 1]:
                self._sampler.begin(attempt.pid)
                went_well = attempt.measure(order, number)
                attempt.note_usage(self._sampler.end())
                if went_well:
                    done = (launch + self._progress(alive, launch)) / self._settings.launches
                    self._observer.block_measured(attempt.variant, done, last_rate(attempt.result.blocks))
                else:
                    alive.remove(attempt)
                    attempt.stop()
                    if alive and not launch and may_be_crowded(attempt.result):
                        crowded.append(attempt)
            number += 1
        for attempt in alive:  # all at once: what they have left to do is timed no more
            attempt.ask_to_finish()
        for attempt in alive:
            attempt.finish()

    def _turns(self, alive: Sequence[Attempt], launch: int) -> list[Attempt]:
        """Whose turn it is in the next round: the first's, and theirs of whom not enough is known yet."""
        if not alive or self._progress(alive, launch) >= 1.0:
            return []
        first, *others = alive
        if self._settings.steps is None and others:
            reference = blocks_of(first, launch)
            others = [
                each for each in others if not is_known(self._settings, blocks_of(each, launch), reference)
            ]
        return [first, *others] if others or len(alive) == 1 else []

    def _progress(self, alive: Sequence[Attempt], launch: int) -> float:
        return progress(self._settings, [blocks_of(attempt, launch) for attempt in alive])


def blocks_of(attempt: Attempt, launch: int) -> tuple[Block, ...]:
    """A variant's blocks of one launch so far."""
    return tuple(block for block in attempt.result.blocks if block.launch == launch)


def loading_at_once(first: Attempt, launch: int) -> int:
    """How many children may load side by side, given the first to be started, which shows whether it can."""
    environment = first.result.environment
    accelerated = environment is not None and any(device.is_accelerator for device in environment.devices)
    if accelerated or not (launch or first.has_loaded):
        return 1
    return min(os.cpu_count() or 1, MOST_LOADING)


def has_room(beside: Sequence[Attempt]) -> bool:
    """Whether the machine's memory holds another child like these."""
    largest = max(attempt.memory_bytes() for attempt in beside)
    return machine.available_memory_bytes() >= SPARE_MEMORY * largest


def last_rate(blocks: Sequence[Block]) -> float:
    """Samples per second of the last block."""
    return blocks[-1].samples / blocks[-1].duration_ns * 1e9 if blocks else 0.0


def stops_all(baseline: Attempt) -> bool:
    """Whether the baseline, the first to run, could not even start or load."""
    failure = baseline.result.failure
    if failure is None or baseline.result.blocks:
        return False
    return failure.phase == "start" or failure.blames_target


def may_be_crowded(result: VariantResult) -> bool:
    """Whether a child may have failed only for others being alive beside it, with too little known of it.

    Memory ran out, or the user's program did not load although the baseline's did: it may hold a port or
    write a file that only one can.
    """
    failure = result.failure
    if failure is None or len(result.blocks) >= FEWEST_BLOCKS:
        return False
    return failure.kind == "memory" or failure.signal == "SIGKILL" or failure.phase == "load"


def skip(attempt: Attempt, reason: str, kind: str = "not-run") -> None:
    """Record a variant that is not started, unless it was."""
    if attempt.result.failure is None and not attempt.ended:
        attempt.result = not_run(attempt.variant, reason, kind)


def not_run(variant: str, reason: str, kind: str = "not-run") -> VariantResult:
    """The record of a variant that was never started."""
    failure = Failure(phase="start", kind=kind, message=reason)
    return VariantResult(id=variant, status="not-run", failure=failure)


def interrupt(attempt: Attempt) -> None:
    """Note that the run was stopped while a variant was under way, or before."""
    if attempt.is_under_way or (attempt.started and attempt.result.status != "measured"):
        attempt.fail("interrupted", "The audit was interrupted here.", detail="")
    elif not attempt.started:
        skip(attempt, NOT_REACHED, "interrupted")


# --------------------------------------------------------------------------------------------------
# How long to measure


def next_block(settings: Settings, variants: int) -> Go:
    """What each of so many variants measures per round."""
    budget_s = settings.time_budget_s
    per_round = settings.launches * ROUNDS
    share_s = budget_s / per_round / max(1, variants) if budget_s and not settings.steps else 0.0
    return Go(
        settle_s=settings.settle_s,
        min_steps=math.ceil((settings.steps or 1) / per_round),
        min_duration_s=max(settings.shortest_block_s, share_s),
        max_duration_s=min(settings.phase_timeout_s / 4, (budget_s or 240.0) / 4),
    )


def progress(settings: Settings, blocks: Sequence[Sequence[Block]]) -> float:
    """How much of a launch is measured, from 0 to 1, given each variant's blocks in it.

    It ends with the steps asked for, or when the time is spent, whichever comes first; but not before a few
    blocks were had, unless these would take several times the budget.
    """
    steps, budget_s, launches = settings.steps, settings.time_budget_s, settings.launches
    rounds = min(len(own) for own in blocks) / fewest_rounds(settings)
    done = 0.0
    if steps is not None:
        done = min(rounds, *(sum(block.steps for block in own) / steps * launches for own in blocks))
    if budget_s is not None:
        part = sum(block.duration_ns for own in blocks for block in own) / 1e9 / budget_s * launches
        done = max(done, part if part >= MOST_BUDGETS else min(part, rounds))
    return min(1.0, done)


def fewest_rounds(settings: Settings) -> int:
    """Rounds that each launch must have: with few the resampling of a launch says little."""
    return max(3, math.ceil(FEWEST_BLOCKS / settings.launches))


def is_known(settings: Settings, blocks: Sequence[Block], reference: Sequence[Block]) -> bool:
    """Whether the ratio of one to another needs no more rounds, given their blocks of a launch.

    It is known well, or the one is so much slower that nobody will ask by how much: its blocks cost the most.
    """
    ratio = paired_ratio_interval(timed_blocks(blocks), timed_blocks(reference))
    if ratio is None:
        return False
    rounds = min(len(blocks), len(reference))
    if rounds >= FEWEST_BLOCKS and ratio.margin <= NARROW_ENOUGH:
        return True
    return rounds >= fewest_rounds(settings) and ratio.high <= CLEARLY_SLOWER

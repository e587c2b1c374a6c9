"""Running the variants of a plan, each in its own child; whatever happens, each gives a result.

Variants that are timed live side by side and take turns in short blocks, all but one frozen. A machine
that drifts, or is busy with something else for a while, then slows them all alike, and their ratios
within a round hold.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .attempt import Attempt, Observer
from .evidence import FEWEST_BLOCKS
from .launch import Launcher
from .records import Block, Failure, Plan, VariantResult
from .session import Go
from .variants import VARIANTS

#: The budget is spent in about that many rounds. The fewest blocks that count must be had, unless that
#: takes more than so many budgets.
ROUNDS, MOST_BUDGETS = 20, 4.0

#: With few steps asked for there are fewer rounds, down to the fewest that count, before blocks get shorter.
SHORTEST_BLOCK_STEPS = 4

NOT_REACHED = "The audit was interrupted before it."
SAME_FAILURE = "The baseline failed, and this would fail in the same way."


def run(plan: Plan, folder: Path, observer: Observer, launcher: Launcher) -> tuple[VariantResult, ...]:
    """Run every variant of ``plan`` into a folder of its own in ``folder``; return results in that order.

    An interrupt ends the run, not the report: what follows is recorded as not run.
    """
    scratch = Path(tempfile.mkdtemp(prefix="tfaudit-"))
    attempts = [Attempt(plan, name, folder / name, scratch, observer) for name in plan.variants]
    try:
        measure(plan, attempts, launcher, observer)
    except KeyboardInterrupt:
        for attempt in attempts:
            interrupt(attempt)
    finally:
        for attempt in attempts:
            attempt.end()
        shutil.rmtree(scratch, ignore_errors=True)
    return tuple(attempt.result for attempt in attempts)


def measure(plan: Plan, attempts: Sequence[Attempt], launcher: Launcher, observer: Observer) -> None:
    """Time the variants that are to be timed in turns; run the others one after another."""
    timed = [attempt for attempt in attempts if VARIANTS[attempt.variant].purpose == "time"]
    ready, crowded = [], []
    for attempt in timed:
        if stops_all(attempts[0]):
            break
        attempt.start(launcher)
        if attempt.until_ready():
            attempt.freeze()
            ready.append(attempt)
        elif ready and ran_out_of_memory(attempt.result):
            crowded.append(attempt)
        else:
            attempt.end()
    take_turns(plan, ready, observer)
    for attempt in crowded:
        attempt.start_over()
        attempt.start(launcher)
        if attempt.until_ready():
            take_turns(plan, [attempt], observer)
        attempt.end()
    for attempt in attempts:
        if stops_all(attempts[0]):
            skip(attempt, SAME_FAILURE)
        elif attempt not in timed:
            attempt.start(launcher)
            attempt.until_ready()
        attempt.end()


def take_turns(plan: Plan, ready: Sequence[Attempt], observer: Observer) -> None:
    """Measure block after block of each, in an order that is reversed every round."""
    alive = list(ready)
    order = next_block(plan, len(alive))
    direction = 1
    while alive and progress(plan, blocks_of(alive)) < 1.0:
        for attempt in alive[::direction]:
            attempt.thaw()
            if attempt.measure(order):
                attempt.freeze()
                done = progress(plan, blocks_of(alive))
                observer.block_measured(attempt.variant, done, last_rate(attempt.result.blocks))
            else:
                alive.remove(attempt)
                attempt.end()
        direction = -direction
    for attempt in alive:
        attempt.thaw()
        attempt.finish()
        attempt.end()


def blocks_of(attempts: Sequence[Attempt]) -> list[tuple[Block, ...]]:
    """Each variant's blocks so far."""
    return [attempt.result.blocks for attempt in attempts]


def last_rate(blocks: Sequence[Block]) -> float:
    """Samples per second of the last block."""
    return blocks[-1].samples / blocks[-1].duration_ns * 1e9 if blocks else 0.0


def stops_all(baseline: Attempt) -> bool:
    """Whether the baseline, the first to run, could not even start or load."""
    failure = baseline.result.failure
    return failure is not None and (failure.phase == "start" or failure.blames_target)


def ran_out_of_memory(result: VariantResult) -> bool:
    """Whether a child may have failed only because others were alive beside it."""
    failure = result.failure
    return failure is not None and (failure.kind == "memory" or failure.signal == "SIGKILL")


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
    if attempt.started:
        if attempt.result.status != "measured":
            attempt.fail("interrupted", "The audit was interrupted here.", detail="")
    else:
        skip(attempt, NOT_REACHED, "interrupted")


# --------------------------------------------------------------------------------------------------
# How long to measure


def next_block(plan: Plan, variants: int) -> Go:
    """What each of so many variants measures per round."""
    steps, budget_s = plan.settings.steps, plan.settings.time_budget_s
    longest = math.ceil((steps or 1) / FEWEST_BLOCKS)
    return Go(
        min_steps=max(math.ceil((steps or 1) / ROUNDS), min(SHORTEST_BLOCK_STEPS, longest)),
        min_duration_s=budget_s / ROUNDS / max(1, variants) if budget_s and not steps else 0.0,
        max_duration_s=min(plan.settings.phase_timeout_s / 4, (budget_s or 240.0) / 4),
    )


def progress(plan: Plan, blocks: Sequence[Sequence[Block]]) -> float:
    """How much of the measuring is done, from 0 to 1, given each variant's blocks.

    It ends with the steps asked for, or when the time is spent, whichever comes first; without
    ``--steps`` not before a few blocks were had, unless these would take several times the budget.
    """
    steps, budget_s = plan.settings.steps, plan.settings.time_budget_s
    done = 0.0
    if steps is not None:
        done = min(sum(block.steps for block in own) / steps for own in blocks)
    if budget_s is not None:
        part = sum(block.duration_ns for own in blocks for block in own) / 1e9 / budget_s
        enough = steps is not None or part >= MOST_BUDGETS
        done = max(done, part if enough else min(part, min(len(own) for own in blocks) / FEWEST_BLOCKS))
    return min(1.0, done)

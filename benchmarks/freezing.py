"""Whether a process that was frozen goes on as if nothing had been.

One process measures block after block. Between two blocks it goes on at once (steady), or is frozen for half
a second (frozen), or waits for as long without being frozen (waiting), in turns. Prints samples per second
after each kind of pause over the steady ones', with the interval of the rounds.

    python benchmarks/freezing.py [--rounds 30]
"""

from __future__ import annotations

import argparse
import time

from auditing import Bench, bench
from overhead import AUDITED, JOBS

from tfaudit.attempt import Attempt
from tfaudit.progress import Silent
from tfaudit.session import Finish, Go
from tfaudit.statistics import paired_ratio_interval

PAUSE_S = 0.5
KINDS = ("steady", "frozen", "waiting")

#: An input-bound job that a full buffer would flatter.
PREFETCHED = (
    "data.map(lambda a, b: (tf.sort(tf.tile(a, [800]))[:64], b)).batch(64).repeat().prefetch(16)",
    64,
)


def measure(at: Bench, data: str, units: int, rounds: int) -> None:
    program = at.write("frozen.py", AUDITED.format(data=data, units=units, steps=1000))
    attempt = Attempt(at.plan(str(program)), "baseline", at.place / "run", at.place / "scratch", Silent())
    attempt.start(at.launcher)
    if not attempt.until_ready():
        raise SystemExit(attempt.result.failure)
    order = Go(min_steps=1, min_duration_s=0.25)
    turns: dict[str, dict[tuple[int, int], tuple[float, float]]] = {kind: {} for kind in KINDS}
    for number in range(rounds):
        for kind in KINDS[:: 1 if number % 2 else -1]:
            settle(attempt)
            if kind == "frozen":
                attempt.freeze()
            if kind != "steady":
                time.sleep(PAUSE_S)
            attempt.tell(order)
            attempt.thaw()
            attempt.until_ready()
            block = attempt.result.blocks[-1]
            turns[kind][0, number] = (block.samples, block.duration_ns / 1e9)
    attempt.tell(Finish())
    attempt.end()
    for kind in KINDS[1:]:
        ratio = paired_ratio_interval(turns[kind], turns["steady"])
        assert ratio is not None
        print(f"  {kind} ÷ steady: {ratio.median:.3f} ({ratio.low:.3f}–{ratio.high:.3f})", flush=True)


def settle(attempt: Attempt) -> None:
    """A block that is not counted, so that each kind follows on the same."""
    attempt.tell(Go(min_steps=1, min_duration_s=0.25))
    attempt.until_ready()


def run(at: Bench, rounds: int) -> None:
    jobs = {name: (data, units) for name, (data, units, _) in JOBS.items()}
    for name, (data, units) in {**jobs, "input-bound, prefetched": PREFETCHED}.items():
        print(name, flush=True)
        measure(at, data, units, rounds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    with bench() as made:
        run(made, rounds)

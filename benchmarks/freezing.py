"""Whether a process that was frozen goes on as if nothing had been.

Two processes run the same job. One measures block after block; between two blocks it goes on at once
(steady), or is frozen while the other measures a block of half a second (frozen), as in an audit, or waits
for that without being frozen (waiting). Prints samples per second after each kind of pause over the steady
ones, with the interval of the rounds.

    python benchmarks/freezing.py [--rounds 30]
"""

from __future__ import annotations

import argparse

from auditing import Bench, bench, written
from overhead import AUDITED, JOBS

from tfaudit.records import Settings
from tfaudit.session import Go
from tfaudit.statistics import Turns, paired_ratio_interval

KINDS = ("steady", "frozen", "waiting")

#: An input-bound job that a full buffer would flatter.
PREFETCHED = (
    "data.map(lambda a, b: (tf.sort(tf.tile(a, [800]))[:64], b)).batch(64).repeat().prefetch(16)",
    64,
)

BLOCK, PAUSE = Go(settle_s=Settings().settle_s, min_duration_s=0.25), Go(min_duration_s=0.5)


def measure(at: Bench, data: str, units: int, rounds: int) -> None:
    program = str(at.write("frozen.py", AUDITED.format(data=data, units=units, steps=1000)))
    one, other = at.start(program, "baseline"), at.start(program, "no-xla")
    turns: dict[str, dict[tuple[int, int], tuple[float, float]]] = {kind: {} for kind in KINDS}
    for number in range(rounds):
        for kind in KINDS[:: 1 if number % 2 else -1]:
            one.thaw()
            one.tell(BLOCK)  # not counted: each kind follows on the same
            one.until_ready()
            if kind == "frozen":
                one.freeze()
            if kind != "steady":
                other.measure(PAUSE, number)
            one.tell(BLOCK)
            one.thaw()
            one.until_ready()
            block = one.result.blocks[-1]
            turns[kind][0, number] = (block.samples, block.duration_ns / 1e9)
            one.freeze()
    one.end()
    other.end()
    for kind in KINDS[1:]:
        print(f"  {kind} ÷ steady: {ratio(turns[kind], turns['steady'])}", flush=True)


def ratio(turns: Turns, reference: Turns) -> str:
    found = paired_ratio_interval(turns, reference)
    assert found is not None
    return written(found)


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

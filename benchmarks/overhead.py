"""What tfaudit's timing does to what it times: its baseline against a plain script.

Each pair is a script that calls ``model.fit``, started by itself and told nothing of tfaudit, and the same
job's baseline as in an audit. Both are alive together and take turns, in alternating order, so that the
machine's drift meets both. The script waits between two epochs for its next turn, frozen, lest it fill its
buffers in the other's; like tfaudit it does not count what follows right on that (see freezing.py for what
freezing does), nor what Keras does between epochs. Prints the ratio of samples per second of each pair, with
the interval of its rounds, and the median of the pairs.

    python benchmarks/overhead.py [--pairs 10] [JOB …]
"""

from __future__ import annotations

import argparse
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from auditing import Bench, bench, written

from tfaudit import runner
from tfaudit.evidence import timed_blocks
from tfaudit.records import Interval, Settings
from tfaudit.statistics import paired_ratio_interval, rate_interval

#: Two jobs, bound by the model and by the input: pipeline, units per layer, and steps per epoch, which take
#: some 0.2 s.
JOBS = {
    "compute-bound": ("data.batch(64).cache().prefetch(2).repeat()", 512, 100),
    "input-bound": (
        "data.map(lambda a, b: (tf.sort(tf.tile(a, [800]))[:64], b)).batch(64).repeat()",
        64,
        2,
    ),
}

#: Epochs that a turn of the plain script is timed for, after one that is not.
EPOCHS = 2

#: What a default audit, which times so many variants, asks for in each turn.
BLOCK = runner.next_block(Settings(), variants=11)

JOB = """
import sys, time
import numpy as np, tensorflow as tf, keras
keras.utils.set_random_seed(0)
x, y = np.random.rand(6400, 64).astype("float32"), np.random.rand(6400, 1).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, y))
data = {data}
layers = [keras.layers.Dense({units}) for _ in range(4)]
model = keras.Sequential([keras.Input((64,)), *layers, keras.layers.Dense(1)])
model.compile("sgd", "mse")
"""

AUDITED = JOB + "model.fit(data, steps_per_epoch={steps}, epochs=1_000_000)\n"

PLAIN = (
    JOB
    + """
class Turns(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch % ({epochs} + 1) == 0:
            if epoch:
                print({steps} * {epochs} * 64, self.seconds, file=sys.stderr, flush=True)
            if not sys.stdin.readline():
                self.model.stop_training = True
            self.seconds = 0.0
        self.began = time.perf_counter()
    def on_epoch_end(self, epoch, logs=None):
        if epoch % ({epochs} + 1):
            self.seconds += time.perf_counter() - self.began
model.fit(data, steps_per_epoch={steps}, epochs=1_000_000, callbacks=[Turns()])
"""
)


class Plain:
    """A plain script under way, frozen between its turns."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def turn(self) -> tuple[float, float]:
        """Samples and seconds of its next turn."""
        assert self._process.stdin is not None and self._process.stderr is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self._process.send_signal(signal.SIGCONT)
        for line in self._process.stderr:
            samples, _, seconds = line.partition(" ")
            if samples.isdecimal():
                self._process.send_signal(signal.SIGSTOP)
                return float(samples), float(seconds)
        raise SystemExit("The plain script failed.")


@contextmanager
def plain(at: Bench, text: str) -> Iterator[Plain]:
    """A plain script, waiting for its first turn."""
    command = [sys.executable, str(at.write("plain.py", text))]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stderr=pipe, stdout=subprocess.DEVNULL, text=True) as process:
        try:
            yield Plain(process)
        finally:
            process.kill()


def pair(at: Bench, job: str, number: int, rounds: int) -> Interval:
    """tfaudit's baseline over plain ``fit``, in samples per second, of one process each."""
    data, units, steps = JOBS[job]
    fill = {"data": data, "units": units, "steps": steps, "epochs": EPOCHS}
    plainly: dict[tuple[int, int], tuple[float, float]] = {}
    with plain(at, PLAIN.format(**fill)) as script:
        script.turn()  # it is warm and waits
        baseline = at.start(str(at.write("audited.py", AUDITED.format(**fill))), "baseline")
        for round in range(rounds):
            for way in ("plain", "tfaudit")[:: 1 if (round + number) % 2 else -1]:
                if way == "plain":
                    plainly[0, round] = script.turn()
                elif not baseline.measure(BLOCK, round):
                    raise SystemExit(str(baseline.result.failure))
        baseline.end()
    audited = timed_blocks(baseline.result.blocks)
    ratio, here, there = (
        paired_ratio_interval(audited, plainly),
        rate_interval(plainly),
        rate_interval(audited),
    )
    assert ratio and here and there
    rates = f"plain {here.median:,.0f}, tfaudit {there.median:,.0f} samples/s"
    print(f"  {rates}: {written(ratio)}", flush=True)
    return ratio


def ratios(at: Bench, job: str, pairs: int, rounds: int = 30) -> list[float]:
    """The ratio of each pair of processes."""
    return [pair(at, job, number, rounds).median for number in range(pairs)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("jobs", nargs="*", choices=[[], *JOBS], metavar="JOB")
    arguments = parser.parse_args()
    with bench() as at:
        for job in arguments.jobs or JOBS:
            print(job, flush=True)
            found = ratios(at, job, arguments.pairs)
            print(f"{job}: tfaudit ÷ plain = {statistics.median(found):.3f} (median of {len(found)} pairs)")


if __name__ == "__main__":
    main()

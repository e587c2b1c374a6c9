"""What tfaudit's timing does to what it times: its baseline against a plain loop around fit.

Each pair runs, one after the other and in alternating order, the same small job as a plain script that
times ``model.fit`` over as many steps after a warm-up, and as tfaudit's baseline. Prints the ratio of
samples per second.

    python benchmarks/overhead.py [--pairs 5]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tfaudit.records import VariantResult, read

#: Two jobs, bound by the model and by the input: pipeline, units per layer, and the timed steps, which take
#: some seconds, so that what ``fit`` needs to begin does not count.
JOBS = {
    "compute-bound": ("data.batch(64).cache().prefetch(2).repeat()", 512, 3000),
    "input-bound": (
        "data.map(lambda a, b: (tf.sort(tf.tile(a, [800]))[:64], b)).batch(64).repeat()",
        64,
        150,
    ),
}

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

AUDITED = JOB + "model.fit(data, steps_per_epoch={steps}, epochs=3)\n"

#: One call of fit, timed from its second epoch on; a second call would destroy the first one's iterator,
#: which at times takes TensorFlow seconds.
PLAIN = (
    JOB
    + """
class Clock(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.ends = []
    def on_epoch_end(self, epoch, logs=None):
        self.ends.append(time.perf_counter())
clock = Clock()
model.fit(data, steps_per_epoch={steps} // 10, epochs=11, callbacks=[clock])
print({steps} // 10 * 10 * 64 / (clock.ends[-1] - clock.ends[0]), file=sys.stderr)
"""
)


def plain(folder: Path, text: str) -> float:
    """Samples per second as a ten-line script measures them."""
    script = folder / "plain.py"
    script.write_text(text)
    done = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True)
    return float(done.stderr.split()[-1])


def audited(folder: Path, text: str, steps: int) -> float:
    """Samples per second of tfaudit's baseline: all samples over all of the timed time."""
    script, run = folder / "audited.py", folder / "run"
    script.write_text(text)
    command = [sys.executable, "-m", "tfaudit", "run", str(script), "--variant", "baseline"]
    options = ["--steps", str(steps), "--output", str(run), "--overwrite", "--quiet", "--fail-on", "never"]
    subprocess.run([*command, *options], check=True)
    blocks = read(run / "variants" / "baseline" / "result.json", VariantResult).blocks
    return sum(block.samples for block in blocks) / sum(block.duration_ns for block in blocks) * 1e9


def ratios(folder: Path, job: str, pairs: int) -> list[float]:
    """tfaudit's baseline over plain ``fit``, in samples per second, for so many pairs of runs."""
    data, units, steps = JOBS[job]
    fill = {"data": data, "units": units, "steps": steps}
    found = []
    for number in range(pairs):
        rates = {}
        for way in ("plain", "tfaudit")[:: 1 if number % 2 else -1]:
            rates[way] = (
                plain(folder, PLAIN.format(**fill))
                if way == "plain"
                else audited(folder, AUDITED.format(**fill), steps)
            )
        found.append(rates["tfaudit"] / rates["plain"])
        print(f"  plain {rates['plain']:,.0f}, tfaudit {rates['tfaudit']:,.0f} samples/s", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    pairs = parser.parse_args().pairs
    with tempfile.TemporaryDirectory() as name:
        for job in JOBS:
            print(job)
            found = ratios(Path(name), job, pairs)
            print(f"{job}: tfaudit ÷ plain = {statistics.median(found):.3f} (median of {len(found)} pairs)")


if __name__ == "__main__":
    main()

"""Whether tfaudit's comparisons can be trusted: no effect invented, none missed, no process left.

    python benchmarks/trust.py [--short] [PART …]

Parts, all by default:

same       audits in which a variant equals the baseline: at most one of 20 calls it faster or slower
planted    work or sleep of 15 % and 30 % in the input or the model: found in 9 of 10, in all; the interval
           covers the truth 9 times of 10
overhead   the baseline's samples per second against plain ``fit``, within 2 %
duration   a default run of a sample model: at most 90 s, and half of what plain scripts need
endings    children killed, the run interrupted and killed, at any moment: no process left, and a report

Prints each figure with what must hold, and exits 1 when something does not. ``--short`` does a few of each.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import overhead
import psutil
from auditing import Bench, bench, written

from tfaudit.recorders import LOGGED_STEPS, TRACED_STEPS, WARM_UP_STEPS
from tfaudit.records import Plan, VariantResult, read
from tfaudit.statistics import verdict
from tfaudit.variants import VARIANTS

SAMPLE = Path(__file__).resolve().parent.parent / "sample_models" / "input_bound_images.py"

failures: list[str] = []


def must(holds: bool, sentence: str) -> None:
    print(f"{'holds' if holds else 'DOES NOT HOLD'}: {sentence}", flush=True)
    if not holds:
        failures.append(sentence)


# --------------------------------------------------------------------------------------------------
# Nothing invented

SAME = """
import keras, numpy as np, tensorflow as tf
x, y = np.random.rand(6400, 64).astype("float32"), np.random.rand(6400, 1).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(6400).batch(64).prefetch(2)
hidden = [keras.layers.Dense(512) for _ in range(4)]
model = keras.Sequential([keras.Input((64,)), *hidden, keras.layers.Dense(1)])
model.compile("sgd", "mse", jit_compile=False)
model.fit(data, epochs=100)
"""


def same(at: Bench, short: bool) -> None:
    """``no-xla`` changes nothing about a job with jit_compile=False."""
    target, audits, wrong = at.write("same.py", SAME), 2 if short else 20, 0
    for number in range(audits):
        ratio = at.audit(str(target), "no-xla", time_budget_s=6.0).ratio("no-xla", to="baseline")
        assert ratio is not None
        wrong += verdict(ratio) != "no difference"
        print(f"  {number + 1}: {written(ratio)} {verdict(ratio)}", flush=True)
    must(wrong <= 1, f"{wrong} of {audits} audits of the same program call it faster or slower (at most 1)")


# --------------------------------------------------------------------------------------------------
# Nothing missed

PLANTED = """
import time
import keras, numpy as np, tensorflow as tf
from tfaudit import Job

STEP_S, SUMS, NUMBERS = 0.08, 160, np.random.rand(150_000)

def sleep(parts):
    time.sleep(parts * STEP_S)

def work(parts):
    for _ in range(round(parts * SUMS)):  # on one core, lest threads that wait for each other blur the effect
        np.cumsum(NUMBERS)

def job():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    spared = keras.config.dtype_policy().name == "mixed_bfloat16"
    in_model = {effect} if "{place}" == "model" and not spared else 0.0
    in_input = {effect} if "{place}" == "input" else 0.0
    batch = np.ones((32, 4), "float32")

    def batches():
        while True:
            if in_input:
                {kind}(in_input)
            yield batch

    def train_step(model, batch):
        {kind}(1.0 + in_model)
        return 0.0

    data = tf.data.Dataset.from_generator(batches, output_signature=tf.TensorSpec((32, 4)))
    options = tf.data.Options()
    # TensorFlow prefetches a batch unasked, which would hide what is planted.
    options.experimental_optimization.inject_prefetch = False
    return Job(model, data.with_options(options), train_step)
"""

#: What from_generator and waking from sleep add to 80 ms, so that the truth itself is known to this.
PLANTED_WITHIN = 0.01

#: Which variant is spared the planted effect.
SPARED = {"input": "cached-input", "model": "bfloat16"}


def planted(at: Bench, short: bool) -> None:
    """An effect is planted in all variants but one, which must come out as much faster."""
    kinds = list(itertools.product(("input", "model"), ("sleep", "work")))
    for effect, share in ((0.15, 0.9), (0.30, 1.0)):
        found = covered = 0
        # in short, what the machine's other work disturbs least: sleep, once in the input, once in the model
        cases = [("input" if effect < 0.2 else "model", "sleep")] if short else (kinds * 3)[:10]
        for place, kind in cases:
            target = at.write("planted.py", PLANTED.format(effect=effect, place=place, kind=kind))
            variant = SPARED[place]
            evidence = at.audit(f"{target}:job", variant, time_budget_s=6.0)
            ratio = evidence.ratio(variant, to="baseline")
            assert ratio is not None
            found += verdict(ratio) == "faster"
            covered += ratio.low - PLANTED_WITHIN <= 1 + effect <= ratio.high + PLANTED_WITHIN
            print(f"  {effect:.0%} {kind} in the {place}: {written(ratio)}", flush=True)
        count = len(cases)
        must(
            found >= share * count,
            f"{found} of {count} planted effects of {effect:.0%} are found ({share:.0%})",
        )
        must(short or covered >= 0.9 * count, f"{covered} of {count} intervals cover the truth (90 %)")


# --------------------------------------------------------------------------------------------------
# What it costs


def plain_fit(at: Bench, short: bool) -> None:
    for job in overhead.JOBS:
        ratios = overhead.ratios(at, job, pairs=2 if short else 10)
        median = statistics.median(ratios)
        sentence = f"{job}: baseline ÷ plain fit = {median:.3f}, median of {len(ratios)} pairs (0.98–1.02)"
        must(short or abs(median - 1) <= 0.02, sentence)


#: A variant as a plain script: the program with ``fit`` replaced, before that what the variant sets.
SCRIPT = """
import runpy, sys
import keras, tensorflow as tf
variant, program, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
if variant in ("bfloat16", "float16"):
    keras.config.set_dtype_policy("mixed_" + variant)
fit = keras.Model.fit
def train(model, data, **options):
    if variant in ("cached-input", "constant-batch"):
        data = data.take(1).cache()
    if variant in ("source-cached", "source-cached-input-only"):
        data = data.cache()
    if variant == "parallel-input":
        data = data.prefetch(tf.data.AUTOTUNE)
    data = data.repeat()
    if variant in ("xla", "no-xla"):
        model.jit_compile = variant == "xla"
    if variant.endswith("input-only") or variant == "weighed":
        for batch in data.take(steps):
            pass
    else:
        fit(model, data, steps_per_epoch=steps, verbose=0)
    sys.exit()
keras.Model.fit = train
sys.path.insert(0, program.rpartition("/")[0])
runpy.run_path(program, run_name="__main__")
"""


def duration(at: Bench, short: bool) -> None:
    """A default run, and as many steps of as many launches of each variant, one after another."""
    output = at.place / "demo"
    began = time.monotonic()
    command = [sys.executable, "-m", "tfaudit", "run", str(SAMPLE), "--output", str(output)]
    subprocess.run([*command, "--fail-on", "never", "--quiet"], check=True)
    took_s = time.monotonic() - began
    must(took_s <= 90, f"a default run of {SAMPLE.name} takes {took_s:.0f} s (at most 90)")
    if short:
        return
    script, plain_s = at.write("plain.py", SCRIPT), 0.0
    for variant in read(output / "plan.json", Plan).variants:
        result = read(output / "variants" / variant / "result.json", VariantResult)
        for steps in launched_steps(result):
            began = time.monotonic()
            arguments = [sys.executable, str(script), variant, str(SAMPLE), str(steps)]
            subprocess.run(arguments, check=True, capture_output=True)
            plain_s += time.monotonic() - began
    must(
        took_s <= plain_s / 2,
        f"as plain scripts the same steps take {plain_s:.0f} s (at least twice as long)",
    )


def launched_steps(result: VariantResult) -> list[int]:
    """Steps of each of a variant's launches, from its very first."""
    if result.weighed is not None:  # batches, each some of the pipeline's work
        return [sum(len(each.from_input_s) for each in result.weighed.maps) + len(result.weighed.whole_s)]
    if VARIANTS[result.id].purpose != "time":
        return [LOGGED_STEPS if VARIANTS[result.id].purpose == "log" else WARM_UP_STEPS + TRACED_STEPS]
    return [
        1 + len(warm_up.step_ns) + sum(block.steps for block in result.blocks if block.launch == launch)
        for launch, warm_up in enumerate(result.warm_ups)
    ]


# --------------------------------------------------------------------------------------------------
# How it ends

MARK = "TFAUDIT_BENCHMARK"


def endings(at: Bench, short: bool) -> None:
    """Something is killed at a moment drawn at random; what carries the mark in its environment must go."""
    target, chance = at.write("same.py", SAME), random.Random(0)
    ways: list[tuple[str, Callable[[psutil.Process], None], bool]] = [
        ("a child is killed", lambda run: kill_one(run, chance), True),
        ("the run gets Ctrl-C", lambda run: run.send_signal(signal.SIGINT), True),
        ("the run gets SIGTERM", lambda run: run.send_signal(signal.SIGTERM), True),
        ("the run is killed", lambda run: run.kill(), False),
    ]
    left = missing = 0
    for number in range(4 if short else 40):
        name, act, reports = ways[number % len(ways)]
        mark, output = uuid.uuid4().hex, Path(tempfile.mkdtemp(dir=at.place)) / "run"
        command = [
            sys.executable,
            "-m",
            "tfaudit",
            "run",
            str(target),
            "-o",
            str(output),
            "--time-budget",
            "6",
        ]
        options = [
            "--variant",
            "xla",
            "--variant",
            "cached-input",
            "--variant",
            "profiled",
            "--fail-on",
            "never",
        ]
        started = psutil.Popen(
            [*command, *options],
            env={**os.environ, MARK: mark},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        moment_s = chance.uniform(0.5, 20.0)
        try:
            started.wait(moment_s)
        except psutil.TimeoutExpired:
            act(started)
        started.wait()
        time.sleep(1.0)
        over = survivors(mark)
        has_report = (output / "report.html").is_file() and (output / "report.json").is_file()
        left += bool(over)
        # before the folder is there, there is nothing to report on
        missing += reports and output.exists() and not has_report
        print(
            f"  {name} after {moment_s:.1f} s: {len(over)} left, {'a' if has_report else 'no'} report",
            flush=True,
        )
    must(left == 0, f"{left} endings leave a process")
    must(missing == 0, f"{missing} endings leave no report")


def kill_one(run: psutil.Process, chance: random.Random) -> None:
    """Kill a child that runs the program, or the fork server while there is none."""
    children = run.children(recursive=True)
    if children:
        victim = chance.choice(children[1:] or children)
        victim.kill()


def survivors(mark: str) -> list[psutil.Process]:
    """Processes that carry the mark and are no mere entries of ended ones."""
    return [
        process
        for process in psutil.process_iter(["environ", "status"])
        if (process.info["environ"] or {}).get(MARK) == mark
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


PARTS = {"same": same, "planted": planted, "overhead": plain_fit, "duration": duration, "endings": endings}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART")
    arguments = parser.parse_args()
    with bench() as at:
        for name in arguments.parts or PARTS:
            began = time.monotonic()
            print(name, flush=True)
            PARTS[name](at, arguments.short)
            print(f"  {time.monotonic() - began:.0f} s", flush=True)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()

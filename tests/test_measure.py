"""Measuring real jobs: what is counted, what each variant changes, what fit may be given."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from tfaudit import feeding
from tfaudit.variants import VARIANTS

pytestmark = pytest.mark.tensorflow

HEAD = """
import keras, numpy as np, tensorflow as tf
def model(**options):
    m = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1)])
    m.compile("sgd", "mse", **options)
    return m
x, y = np.ones((60, 4), "f4"), np.ones((60, 1), "f4")
"""

#: How fit may be fed: the last lines of a script. All have 60 samples, of which an epoch's last batch has 4.
FEEDS = {
    "a dataset": "model().fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(8), verbose=0)",
    "a dataset that ends in a prefetch": """
        d = tf.data.Dataset.from_tensor_slices((x, y)).batch(8).prefetch(tf.data.AUTOTUNE)
        options = tf.data.Options()
        options.deterministic = False
        model().fit(d.with_options(options), verbose=0)""",
    "arrays": "model().fit(x, y, batch_size=8, verbose=0)",
    "arrays with class weights": "model().fit(x, y, batch_size=8, class_weight={0: 1.0, 1: 2.0}, verbose=0)",
    "arrays with a validation split": """
        model().fit(np.ones((120, 4)), np.ones((120, 1)), batch_size=8, validation_split=0.5, verbose=0)""",
    "a PyDataset": """
        class Batches(keras.utils.PyDataset):
            def __len__(self):
                return 8
            def __getitem__(self, i):
                return x[i * 8 : i * 8 + 8], y[i * 8 : i * 8 + 8]
        model().fit(Batches(), verbose=0)""",
    "an endless generator": """
        def batches():
            while True:
                for i in range(0, 60, 8):
                    yield x[i : i + 8], y[i : i + 8]
        model().fit(batches(), steps_per_epoch=8, verbose=0)""",
    "dicts with sample weights": """
        inputs = {"a": keras.Input((4,), name="a"), "b": keras.Input((4,), name="b")}
        m = keras.Model(inputs, keras.layers.Dense(1)(inputs["a"] + inputs["b"]))
        m.compile("sgd", "mse")
        m.fit(tf.data.Dataset.from_tensor_slices(({"a": x, "b": x}, y, np.ones(60))).batch(8), verbose=0)""",
    "a repeated dataset and steps per epoch": """
        d = tf.data.Dataset.from_tensor_slices((x, y)).batch(8).repeat()
        model().fit(d, steps_per_epoch=4, verbose=0)""",
    "a model built by its first batch": """
        m = keras.Sequential([keras.layers.Dense(1)])
        m.compile("sgd", "mse")
        m.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(8), verbose=0)""",
    "a train_step of its own": """
        class Own(keras.Model):
            def __init__(self):
                super().__init__()
                self.dense = keras.layers.Dense(1)
            def call(self, x):
                return self.dense(x)
            def train_step(self, data):
                x, y = data
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean((self(x) - y) ** 2)
                grads = tape.gradient(loss, self.trainable_variables)
                self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
                return {"loss": loss}
        m = Own()
        m.compile("sgd")
        m.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(8), verbose=0)""",
    "eager execution": """
        model(run_eagerly=True).fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(8), verbose=0)""",
    "a distribution strategy": """
        with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
            m = model()
            m.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(8), verbose=0)""",
}


def script(last: str) -> str:
    lines = last.strip("\n").split("\n")
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return HEAD + "\n".join(line[indent:] for line in lines) + "\n"


@pytest.mark.parametrize("feed", FEEDS)
def test_samples_are_counted_from_the_batches(feed: str, program: Callable, measured: Callable) -> None:
    """Two epochs' worth of steps hold as many samples as the data has, smaller last batches included."""
    steps = 16
    results = measured(str(program(script(FEEDS[feed]))), "cached-input", "input-only", steps=steps)
    for name in ("baseline", "input-only"):
        result = results[name]
        assert result.failure is None, (name, result.failure)
        assert sum(block.steps for block in result.blocks) == steps
        assert sum(block.samples for block in result.blocks) == pytest.approx(7.5 * steps, abs=4)
    cached = results["cached-input"]
    assert cached.failure is None, cached.failure
    assert {block.samples / block.steps for block in cached.blocks} == {8.0}


def test_two_epochs_are_counted_exactly(program: Callable, measured: Callable) -> None:
    """Whole epochs hold exactly as many samples as the data: warm-up ends wherever it ends."""
    path = program(script(FEEDS["a dataset"]))
    result = measured(str(path), steps=80)["baseline"]
    sizes = [block.samples for block in result.blocks]
    assert sum(sizes) == 600
    assert sum(len(block.epoch_starts) for block in result.blocks) == 10


def test_steps_per_execution(program: Callable, measured: Callable) -> None:
    """A call of several steps counts as several; the short one at an epoch's end as fewer."""
    text = """
        m = model(steps_per_execution=3)
        m.fit(tf.data.Dataset.from_tensor_slices((x[:56], y[:56])).batch(8), verbose=0)"""
    result = measured(str(program(script(text))), steps=28)["baseline"]
    assert result.resolved.steps_per_execution == 3
    for block in result.blocks:
        assert block.samples == 8 * block.steps
        assert len(block.step_ns) < block.steps


@pytest.mark.parametrize("jit_compile", [True, False])
def test_steps_per_execution_counts_the_samples_of_all_its_steps(
    jit_compile: bool, program: Callable, measured: Callable
) -> None:
    """Batches of 8, 8, 8, …, 4 in one call, whether or not their number is known beforehand."""
    path = program(
        script(f"""
        m = model(steps_per_execution=8, jit_compile={jit_compile})
        d = tf.data.Dataset.from_tensor_slices((x, y)).filter(lambda a, b: True).batch(8)
        m.fit(d, verbose=0)""")
    )
    result = measured(str(path), steps=64)["baseline"]
    assert result.failure is None
    for block in result.blocks:
        assert (block.steps % 8, block.samples) == (0, 60 * block.steps // 8)


@pytest.mark.parametrize("name", ["baseline", "input-only", "xla"])
def test_the_end_of_data_of_unknown_length_is_no_step(
    name: str, program: Callable, measured: Callable
) -> None:
    """Batches of a fixed size, whose end is found by asking for one more."""
    path = program(
        script("""
        d = tf.data.Dataset.from_tensor_slices((x[:40], y[:40])).batch(8, drop_remainder=True)
        model().fit(d.filter(lambda a, b: True), verbose=0)""")
    )
    result = measured(str(path), name, steps=40)[name]
    assert result.failure is None
    for block in result.blocks:
        assert (block.steps, block.samples) == (len(block.step_ns), 8 * len(block.step_ns))


def test_what_a_variant_changes_is_read_back(program: Callable, measured: Callable) -> None:
    """The resolved jit_compile and dtype policy are those of the variant."""
    path = program(script(FEEDS["a dataset"]))
    results = measured(str(path), "xla", "no-xla", "bfloat16", "float16")
    resolved = {name: result.resolved for name, result in results.items()}
    assert [resolved[name].jit_compile for name in ("baseline", "xla", "no-xla")] == [False, True, False]
    assert resolved["baseline"].dtype_policy == "float32"
    assert resolved["bfloat16"].dtype_policy == "mixed_bfloat16"
    assert resolved["float16"].dtype_policy == "mixed_float16"
    assert resolved["float16"].optimizer == "LossScaleOptimizer"


def test_a_policy_of_the_programs_own_is_reported(program: Callable, measured: Callable) -> None:
    """A variant whose policy the program overrides is not passed off as that variant."""
    path = program(script('keras.config.set_dtype_policy("float32")\n' + FEEDS["a dataset"]))
    failure = measured(str(path), "bfloat16")["bfloat16"].failure
    assert failure.kind == "not-applied"
    assert "sets its own dtype policy (float32)" in failure.message


def test_eager_execution_rules_out_xla(program: Callable, measured: Callable) -> None:
    path = program(script(FEEDS["eager execution"]))
    results = measured(str(path), "xla")
    assert results["baseline"].resolved.run_eagerly is True
    assert results["xla"].failure.kind == "not-applied"


def test_an_op_that_xla_refuses(program: Callable, measured: Callable) -> None:
    """The xla variant fails with a sentence; the baseline is measured."""
    text = """
        class Strings(keras.layers.Layer):
            def call(self, x):
                return x + tf.strings.to_number(tf.strings.as_string(x))
        m = keras.Sequential([keras.Input((4,)), Strings(), keras.layers.Dense(1)])
        m.compile("sgd", "mse")
        m.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(8), verbose=0)"""
    results = measured(str(program(script(text))), "xla")
    assert results["baseline"].status == "measured"
    assert results["xla"].failure.kind == "unsupported"
    assert results["xla"].failure.message.startswith("XLA refuses this model: InvalidArgumentError: Detected")
    assert "site-packages" not in results["xla"].failure.detail


def test_a_loss_that_is_no_number(program: Callable, measured: Callable) -> None:
    """NaN is measured like any loss, also when a callback then ends each run of fit."""
    text = """
        m = model()
        m.fit(x * np.nan, y, batch_size=8, verbose=0, callbacks=[keras.callbacks.TerminateOnNaN()])"""
    result = measured(str(program(script(text))))["baseline"]
    assert result.failure is None
    assert result.blocks[-1].loss is None or result.blocks[-1].loss != result.blocks[-1].loss


def test_data_shorter_than_the_measurement(program: Callable, measured: Callable) -> None:
    """A generator that ends for good is measured up to its end, or said to be too short."""
    text = """
        def batches(n):
            for i in range(n):
                yield x[:8], y[:8]
        import sys
        model().fit(batches(int(sys.argv[1])), verbose=0)"""
    path = program(script(text))
    short = measured(str(path), arguments=("4",))["baseline"]
    assert short.failure.kind == "data-ended"
    assert "The data ended after" in short.failure.message


def test_callbacks_that_write_are_left_out(program: Callable, measured: Callable, tmp_path: Path) -> None:
    """They are named with the reason, and nothing they would write appears."""
    text = """
        class Saver(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                open("written", "w")
        m = model()
        m.fit(x, y, batch_size=8, verbose=0, callbacks=[
            keras.callbacks.ModelCheckpoint("checkpoint.keras"),
            keras.callbacks.CSVLogger("log.csv"),
            Saver(),
            keras.callbacks.EarlyStopping(monitor="loss"),
        ])"""
    path = program(script(text))
    facts = measured(str(path))["baseline"].program.callbacks
    assert [(fact.name, fact.kept) for fact in facts] == [
        ("ModelCheckpoint", False),
        ("CSVLogger", False),
        ("Saver", False),
        ("EarlyStopping", True),
    ]
    assert [entry.name for entry in path.parent.iterdir()] == ["train.py"]


OWN_LOOP = """
import tfaudit
def data():
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
@tf.function
def train_step(model, batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(batch[0]) - batch[1]) ** 2)
    model.optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss
def job():
    return tfaudit.Job(model(), data(), train_step)
"""


def test_a_training_loop_of_ones_own(program: Callable, measured: Callable) -> None:
    """Its samples, loss and traces are told as for fit, in every variant."""
    path = program(HEAD + OWN_LOOP)
    results = measured(f"{path}:job", "cached-input", "input-only", "xla", "placement", "profiled", steps=16)
    for result in results.values():
        assert result.failure is None, (result.id, result.failure)
    assert results["baseline"].traces == 2
    assert results["baseline"].blocks[-1].loss is not None
    assert results["xla"].resolved.jit_compile is True
    assert sum(block.samples for block in results["baseline"].blocks) == pytest.approx(120, abs=4)


def test_builders(program: Callable, measured: Callable) -> None:
    """build_model and build_dataset make a job; train_step is used if there is one."""
    path = program(
        HEAD
        + """
def build_model():
    return model()
def build_dataset():
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
"""
    )
    result = measured(str(path))["baseline"]
    assert result.failure is None
    assert result.program.form == "builders"


def test_a_trace_is_written_and_placement_logged(
    program: Callable, measured: Callable, tmp_path: Path
) -> None:
    path = program(script(FEEDS["a dataset"]))
    results = measured(str(path), "profiled", "placement")
    assert list((tmp_path / "run" / "profiled" / "trace").rglob("*.xplane.pb"))
    assert results["placement"].placement.ops["CPU"]["MatMul"] > 0


def test_facts_on_the_program(program: Callable, measured: Callable) -> None:
    """The pipeline's stages carry the function's name and line."""
    text = """
        def scale(a, b):
            return a / 2, b
        d = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(10).map(scale).batch(8).prefetch(2)
        model().fit(d, verbose=0)"""
    path = program(script(text))
    facts = measured(str(path))["baseline"].program
    stages = [(stage.op, stage.function, stage.num_parallel_calls) for stage in facts.pipeline]
    assert stages == [
        ("from_tensor_slices", None, None),
        ("shuffle", None, None),
        ("map", "scale", None),
        ("batch", None, None),
        ("prefetch", None, None),
    ]
    line = path.read_text().split("\n").index("def scale(a, b):") + 1
    assert facts.pipeline[2].location == f"{path}:{line}"
    assert facts.element_spec == ("x: float32[?, 4]", "y: float32[?, 1]")
    assert facts.parameters == 49
    assert facts.cardinality == 8


COUNTED = """
    import atexit
    reads = []
    def batches():
        while True:
            reads.append(1)
            print("read", len(reads), flush=True)
            yield x[:8], y[:8]
    data = tf.data.Dataset.from_generator(
        batches, output_signature=(tf.TensorSpec((8, 4)), tf.TensorSpec((8, 1)))
    )
"""


@pytest.mark.parametrize("jit_compile", [True, False])
def test_a_constant_batch_asks_the_data_for_one(
    jit_compile: bool, program: Callable, measured: Callable, tmp_path: Path
) -> None:
    """Compiled or not, its steps train and its samples are counted, and no more is read from the data."""
    path = program(
        script(f"{COUNTED}    model(jit_compile={jit_compile}).fit(data, steps_per_epoch=8, verbose=0)")
    )
    result = measured(str(path), "constant-batch", steps=40)["constant-batch"]
    assert result.failure is None
    steps = sum(block.steps for block in result.blocks)
    assert steps >= 40 and sum(block.samples for block in result.blocks) == 8 * steps
    losses = [loss for block in result.blocks for loss in block.losses.values()]
    assert losses == sorted(losses, reverse=True) and losses[0] > losses[-1]
    reads = (tmp_path / "run" / "constant-batch" / "stdout.log").read_text().split()
    assert int(reads[-1]) < 10


def test_each_launch_has_seeds_of_its_own_whatever_the_program_sets(
    program: Callable, measured: Callable, tmp_path: Path
) -> None:
    path = program(
        script("""
        keras.utils.set_random_seed(7)
        m = model()
        print("weights", float(np.sum(m.get_weights()[0])), float(tf.random.uniform(())), flush=True)
        m.fit(x, y, batch_size=8, verbose=0)""")
    )
    results = measured(str(path), "no-xla", launches=2)
    printed = [
        (tmp_path / "run" / name / "stdout.log").read_text().splitlines() for name in ("baseline", "no-xla")
    ]
    assert printed[0] == printed[1]
    first, second = printed[0]
    assert first.split()[1] != second.split()[1] and first.split()[2] != second.split()[2]
    assert [len(result.warm_ups) for result in results.values()] == [2, 2]


def test_losses_are_noted_at_powers_of_two(program: Callable, measured: Callable) -> None:
    path = program(script("model().fit(x, y, batch_size=8, shuffle=False, verbose=0)"))
    result = measured(str(path), steps=40)["baseline"]
    noted = [*result.warm_ups[0].losses, *(step for block in result.blocks for step in block.losses)]
    assert noted == [1, 2, 4, 8, 16, 32][: len(noted)] and len(noted) >= 6


def test_texts_of_varying_length_are_stood_for_by_one_of_the_usual_length(
    program: Callable, measured: Callable, tmp_path: Path
) -> None:
    """Batches of 3 to 18 words; the first is the shortest."""
    path = program(
        script("""
        def batches():
            for length in (3, 10, 11, 18, 12, 9):
                yield np.ones((8, length), "f4"), np.ones((8, 1), "f4")
        class Mean(keras.layers.Layer):
            def call(self, words):
                tf.print("words", tf.shape(words)[1])
                return tf.reduce_mean(words, axis=1, keepdims=True)
        m = keras.Sequential([Mean(), keras.layers.Dense(1)])
        m.compile("sgd", "mse", jit_compile=False)
        words = tf.TensorSpec((8, None))
        data = tf.data.Dataset.from_generator(batches, output_signature=(words, tf.TensorSpec((8, 1))))
        m.fit(data, epochs=3, verbose=0)""")
    )
    results = measured(str(path), "cached-input", "constant-batch", steps=10)
    for name in ("cached-input", "constant-batch"):
        assert results[name].failure is None
        printed = (tmp_path / "run" / name / "stderr.log").read_text().split("words ")[-5:]
        assert [line.split()[0] for line in printed] == ["10"] * 5


@pytest.mark.parametrize("where", ["", "own"])
def test_a_cache_is_full_before_the_clock_starts(
    where: str, program: Callable, measured: Callable, tmp_path: Path
) -> None:
    """In memory or in a file, which is then not the user's; every element is made once per process."""
    path = program(
        script(f"""
        def make(a, b):
            tf.print("made")
            return a, b
        d = tf.data.Dataset.from_tensor_slices((x, y)).map(make).cache({where!r}).batch(8)
        model().fit(d, epochs=3, verbose=0)""")
    )
    before = sorted(path.parent.iterdir())
    results = measured(str(path), "no-xla", steps=30)
    for name in ("baseline", "no-xla"):
        assert (results[name].failure, results[name].cache_filled) == (None, True)
        printed = (tmp_path / "run" / name / "stderr.log").read_text()
        assert printed.count("made") == 60
    assert [each for each in sorted(path.parent.iterdir()) if each.name != "run"] == before


def test_a_cache_that_is_not_full_in_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import tensorflow as tf

    data = tf.data.Dataset.range(100).cache().batch(8).prefetch(1)
    assert feeding.fill_caches(data, seconds_limit=-1.0) is False
    assert feeding.fill_caches(data) is True
    assert feeding.fill_caches(tf.data.Dataset.range(3)) is None
    assert feeding.fill_caches([1, 2]) is None


LEGACY = """
import os
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import numpy as np, tensorflow as tf
x, y = np.ones((60, 4), "f4"), np.ones((60, 1), "f4")
m = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
m.compile("sgd", "mse")
assert type(m).__module__.startswith("tf_keras")
"""


@pytest.mark.skipif(importlib.util.find_spec("tf_keras") is None, reason="tf_keras is not installed")
@pytest.mark.parametrize(
    "feed", ["tf.data.Dataset.from_tensor_slices((x, y)).batch(8)", "x, y, batch_size=8"]
)
def test_legacy_keras(feed: str, program: Callable, measured: Callable) -> None:
    """A program on Keras 2 is captured, varied and counted like one on Keras 3."""
    path = program(f"{LEGACY}m.fit({feed}, epochs=2, verbose=0)")
    results = measured(str(path), *VARIANTS, steps=80)
    refused = {result.id: result.failure.kind for result in results.values() if result.failure}
    of_arrays = ("parallel-input", "source-cached", "source-cached-input-only", "weighed")
    of_data = ("source-cached", "source-cached-input-only")
    assert refused == dict.fromkeys(of_arrays if feed.startswith("x") else of_data, "unsupported")
    baseline = results["baseline"]
    assert sum(block.samples for block in baseline.blocks) == 600
    assert baseline.resolved.framework == "tf_keras"
    assert [results[name].resolved.jit_compile for name in ("xla", "no-xla")] == [True, False]
    assert results["bfloat16"].resolved.dtype_policy == "mixed_bfloat16"

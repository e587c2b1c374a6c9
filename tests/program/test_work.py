"""What the functions of a pipeline's stages do, told of tiny pipelines by TensorFlow itself."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import Any

import msgspec
import pytest

from tfaudit.records import Stage

PIPELINES = """
import json, msgspec, tensorflow as tf
from tfaudit.program.pipeline import stages

def decode(i):
    return tf.io.decode_jpeg(tf.io.encode_jpeg(tf.zeros((8, 8, 3), tf.uint8)))

def shrink(image):
    return tf.image.resize(tf.ensure_shape(image, (8, 8, 3)), (4, 4))

def noisy(image):
    return image + tf.cond(tf.reduce_sum(image) > 0.0, lambda: tf.random.normal(()), lambda: 0.0)

counter = tf.Variable(0.0)

def counted(image):
    return image + counter.assign_add(1.0)

table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), 0)

def looked_up(image):
    return table.lookup(tf.constant("a"))

def checked(image):
    tf.debugging.assert_rank(image, tf.size(tf.shape(image)), message="no image")
    return tf.clip_by_value(image, 0.0, 1.0)

def through_python(image):
    return tf.numpy_function(lambda image: image, [image], tf.float32)

def seeded(image):
    return image + tf.random.stateless_normal((), (1, 2))

@tf.function(jit_compile=True)
def compiled(image):
    return tf.sin(image)

def files(i):
    decoded = tf.data.Dataset.range(2).map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    return decoded.map(shrink).map(noisy).map(lambda image: tf.sin(image))

images = tf.data.Dataset.range(6).map(decode).map(shrink)
told = {
    "augmented": images.cache().shuffle(4).map(noisy).map(checked).batch(2).repeat(),
    "counted": images.map(counted),
    "looked up": images.map(looked_up),
    "python": images.map(through_python),
    "seeded": images.map(seeded),
    "compiled": images.map(compiled),
    "read": tf.data.Dataset.from_tensor_slices(["a"]).interleave(tf.data.TFRecordDataset).map(looked_up),
    "after python": images.map(through_python).map(checked),
    "nested": tf.data.Dataset.range(3).interleave(files),
}
print(msgspec.json.encode({name: stages(dataset) for name, dataset in told.items()}).decode())
"""


@pytest.fixture(scope="module")
def told() -> dict[str, dict[str, Stage]]:
    """The stages of each pipeline by the name of their function, or else of their method."""
    code = [sys.executable, "-c", textwrap.dedent(PIPELINES)]
    done = subprocess.run(code, capture_output=True, text=True, check=True)
    found = msgspec.convert(json.loads(done.stdout.splitlines()[-1]), dict[str, tuple[Stage, ...]])
    return {name: {stage.function or stage.op: stage for stage in stages} for name, stages in found.items()}


pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize(
    ("pipeline", "function", "expected"),
    [
        ("augmented", "decode", True),
        ("augmented", "shrink", True),
        ("augmented", "noisy", False),
        ("augmented", "checked", True),
        ("counted", "counted", False),
        ("looked up", "looked_up", True),
        ("python", "through_python", False),
        ("seeded", "seeded", False),
        ("nested", "decode", True),
        ("nested", "noisy", False),
    ],
)
def test_a_function_is_deterministic_unless_it_draws_keeps_state_or_runs_python(
    told: Any, pipeline: str, function: str, expected: bool
) -> None:
    assert told[pipeline][function].work.is_deterministic is expected


def test_what_is_random_is_found_within_a_branch(told: Any) -> None:
    assert told["augmented"]["noisy"].work.random == ("RandomStandardNormal",)
    assert told["counted"]["counted"].work.stateful == ("AssignAddVariableOp",)


def test_the_ops_without_a_kernel_for_an_accelerator_or_of_xla_are_named(told: Any) -> None:
    """By the registries of this TensorFlow; a build without CUDA still has XLA's kernels for a GPU."""
    decode, shrink = told["augmented"]["decode"].work, told["augmented"]["shrink"].work
    assert decode.not_in_xla == decode.not_on_accelerator == ("DecodeJpeg", "EncodeJpeg")
    assert shrink.not_in_xla == shrink.not_on_accelerator == ()
    assert told["augmented"]["checked"].work.not_in_xla == ()
    assert "LookupTableFindV2" in told["looked up"]["looked_up"].work.not_on_accelerator
    assert "PyFunc" in told["python"]["through_python"].work.not_in_xla


def test_where_a_stage_stands_and_what_it_gives(told: Any) -> None:
    shrink, checked = told["augmented"]["shrink"], told["augmented"]["checked"]
    assert (shrink.after, shrink.before[:2]) == (("range", "map"), ("cache", "shuffle"))
    assert (shrink.after_varying, checked.after_varying) == (False, True)
    assert (shrink.work.bytes_in, shrink.work.bytes_out, shrink.elements) == (None, 4 * 4 * 3 * 4, 6)
    assert (checked.work.bytes_in, told["augmented"]["repeat"].elements) == (192, -1)


def test_reading_records_is_no_state_but_python_may_give_anything(told: Any) -> None:
    assert not told["read"]["looked_up"].after_varying
    assert told["after python"]["checked"].after_varying


def test_a_map_within_a_function_is_told_apart(told: Any) -> None:
    """Each by its function, and what follows a random one by that."""
    inner, last = told["nested"]["decode"], told["nested"]["<lambda>"]
    assert (inner.inside, inner.before, inner.num_parallel_calls) == ("interleave", ("interleave",), -1)
    assert inner.work.not_in_xla == ("DecodeJpeg", "EncodeJpeg")
    assert (inner.after_varying, last.after_varying) == (False, True)


def test_what_is_compiled_already_is_seen(told: Any) -> None:
    assert told["compiled"]["compiled"].work.compiled
    assert not told["augmented"]["shrink"].work.compiled

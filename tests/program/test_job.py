"""Facts on a captured job, as a child tells them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tfaudit.records import Channel, Cluster, Epoch, VariantResult

TRAIN = """
import keras
import tensorflow as tf

def batches(count):
    return tf.data.Dataset.from_tensor_slices((tf.ones((count, 4)), tf.ones((count, 1)))).batch(8)

with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile(loss="mse")
board = keras.callbacks.TensorBoard("logs", profile_batch=(3, 5))
model.fit(batches(80), validation_data=batches(40), validation_steps=2, epochs=3, callbacks=[board])
"""


@pytest.mark.tensorflow
def test_what_is_told_of_a_job(
    measured: Callable[..., dict[str, VariantResult]],
    program: Callable[[str], Path],
) -> None:
    """Its epochs, its strategy, and the callbacks' settings; alone, and outside of SageMaker."""
    result = measured(str(program(TRAIN)), "baseline")["baseline"]
    assert result.failure is None
    told = result.program
    assert told is not None
    assert (told.training, told.validation) == (Epoch(10, 8), Epoch(2, 8))
    assert (told.strategy, told.cluster, told.channels) == ("OneDeviceStrategy", Cluster(), None)
    assert told.callbacks[0].options["profile_batch"] == "3, 5"


ARRAYS = """
import os
import keras
import numpy as np

os.environ["SM_HOSTS"] = '["algo-1", "algo-2"]'
os.environ["SM_INPUT_DATA_CONFIG"] = '{"train": {"TrainingInputMode": "FastFile"}}'
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile(loss="mse")
model.fit(np.ones((100, 4)), np.ones(100), validation_split=0.2, batch_size=10)
"""


@pytest.mark.tensorflow
def test_what_its_environment_tells(
    measured: Callable[..., dict[str, VariantResult]], program: Callable[[str], Path]
) -> None:
    told = measured(str(program(ARRAYS)), "baseline")["baseline"].program
    assert told is not None
    assert (told.training, told.validation) == (Epoch(8, 10), Epoch(2, 10))
    assert told.cluster == Cluster(instances=2, processes=2, told_by="SM_HOSTS")
    assert told.channels == (Channel("train", "FastFile"),)
    assert told.strategy == ""

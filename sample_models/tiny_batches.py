"""A regression on a table, two rows at a time.

Defect: with `BATCH_SIZE = 2` a step computes next to nothing; its time is what Keras and TensorFlow
need to start a step at all, whatever the device, and an accelerator would stand idle.
Fix: a batch size of 64 to 512 (with the learning rate raised to match), and, where steps stay this
short, `compile(steps_per_execution=…)`.

On a CPU no check names this defect (on an accelerator 1.5 does); what fires is what fires on any
script without its own care for throughput, early stopping and record keeping.

    tfaudit run sample_models/tiny_batches.py

expect: 1.1 warn
expect: 7.1 warn
expect: 7.4 warn
"""

import keras
import numpy as np
import tensorflow as tf

ROWS = 2000
COLUMNS = 12
BATCH_SIZE = 2


def make_table(seed):
    """Rows of measurements and the quantity to predict from them."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(ROWS, COLUMNS)).astype("float32")
    target = rows[:, 0] * rows[:, 1] + np.sin(rows[:, 2]) + rng.normal(0.0, 0.1, size=ROWS)
    return rows, target.astype("float32")


keras.utils.set_random_seed(1)

dataset = (
    tf.data.Dataset.from_tensor_slices(make_table(seed=1))
    .shuffle(ROWS)
    .batch(BATCH_SIZE, drop_remainder=True)
    .prefetch(tf.data.AUTOTUNE)
)

model = keras.Sequential(
    [
        keras.Input((COLUMNS,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="adam", loss="mean_squared_error")
model.fit(dataset, epochs=3, verbose=2)

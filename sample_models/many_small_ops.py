"""A regression whose features are simulated, step by step.

Defect: the loop in the map is two hundred rounds of a handful of small ops. TensorFlow starts each of them
on its own, which takes far longer than what they compute.
Fix: `.map(tf.function(features, jit_compile=True))`, which makes one loop of them; or map whole batches.

    tfaudit run sample_models/many_small_ops.py

expect: 1.7 warn
expect: 4.4 warn
expect: 4.5 warn
"""

import keras
import numpy as np
import tensorflow as tf

ROWS = 4096
COLUMNS = 64
BATCH_SIZE = 32
ROUNDS = 200


def make_rows(seed):
    """Random readings, and something to predict from them."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(ROWS, COLUMNS)).astype("float32")
    return rows, np.sin(rows[:, 0]).astype("float32")


def features(row, target):
    """Where damped pendulums are that were let go at each reading."""
    angle, speed = row, tf.zeros_like(row)
    for _ in tf.range(ROUNDS):
        speed = 0.98 * speed - 0.1 * tf.sin(angle)
        angle = angle + 0.1 * speed
    return angle, target


keras.utils.set_random_seed(1)

dataset = (
    tf.data.Dataset.from_tensor_slices(make_rows(seed=1))
    .shuffle(ROWS)
    .map(features, num_parallel_calls=tf.data.AUTOTUNE)
    .batch(BATCH_SIZE, drop_remainder=True)
    .prefetch(tf.data.AUTOTUNE)
)

model = keras.Sequential(
    [
        keras.Input((COLUMNS,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="sgd", loss="mean_squared_error")
model.fit(dataset, epochs=3, verbose=2)

"""A model whose own layer is a long formula, with XLA switched off.

Defect: `jit_compile=False`, left over from hunting a bug. The layer is a hundred small ops, each of
which reads and writes all of its input.
Fix: `jit_compile=True`, or leave the argument out and let Keras decide.

    tfaudit run sample_models/not_compiled.py

expect: 5.2 fail
"""

import keras
import numpy as np
import tensorflow as tf

ROWS = 4096
COLUMNS = 512
BATCH_SIZE = 256


class Pendulum(keras.layers.Layer):
    """Twenty rounds of a damped pendulum started with each of its inputs."""

    def call(self, angle):
        speed = tf.zeros_like(angle)
        for _ in range(20):
            speed = 0.98 * speed - 0.1 * (angle - angle * angle * angle / 6.0)
            angle = angle + 0.1 * speed
        return angle


keras.utils.set_random_seed(1)

rows = np.random.default_rng(1).normal(scale=0.1, size=(ROWS, COLUMNS)).astype("float32")
target = np.sin(rows[:, 0])

model = keras.Sequential(
    [
        keras.Input((COLUMNS,)),
        keras.layers.Dense(COLUMNS),
        Pendulum(),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="sgd", loss="mean_squared_error", jit_compile=False)
model.fit(rows, target, batch_size=BATCH_SIZE, epochs=3, verbose=2)

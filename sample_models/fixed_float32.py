"""A model with a layer of its own that insists on float32.

Defect: the layer multiplies its input with a float32 constant. With mixed precision the input is float16 or
bfloat16, TensorFlow refuses to multiply the two, and what mixed precision would give cannot be measured.
Fix: `tf.cast(self.scale, inputs.dtype)`, or keras.ops, which cast by themselves.

    tfaudit run sample_models/fixed_float32.py

expect: 8.2 warn
"""

import keras
import numpy as np
import tensorflow as tf

ROWS = 4096
COLUMNS = 64
BATCH_SIZE = 64


class Scaled(keras.layers.Layer):
    """Its input, each column times a number of its own."""

    def build(self, shape):
        self.scale = tf.linspace(0.5, 2.0, shape[-1])

    def call(self, inputs):
        return tf.multiply(inputs, self.scale)


keras.utils.set_random_seed(1)

rows = np.random.default_rng(1).normal(size=(ROWS, COLUMNS)).astype("float32")
target = rows[:, 0] * rows[:, 1]

model = keras.Sequential(
    [
        keras.Input((COLUMNS,)),
        keras.layers.Dense(256, activation="relu"),
        Scaled(),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="adam", loss="mean_squared_error")
model.fit(rows, target, batch_size=BATCH_SIZE, epochs=3, verbose=2)

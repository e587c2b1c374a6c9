"""A long training for four GPUs of one machine, which an interruption would lose.

Defect: nothing saves what was trained so far, so that it cannot run where it is cheapest, on a spot
instance; and it counts on four GPUs, and on the second of them being there.
Fix: `keras.callbacks.BackupAndRestore(folder)`, `len(tf.config.list_logical_devices("GPU"))` for the count,
and no device by its number.

    tfaudit run sample_models/long_run.py

expect: 2.5 warn
expect: 2.6 warn
"""

import keras
import numpy as np
import tensorflow as tf

NUM_GPUS = 4
ROWS = 4096
COLUMNS = 64
BATCH_SIZE = 64 * NUM_GPUS

keras.utils.set_random_seed(1)

rows = np.random.default_rng(1).normal(size=(ROWS, COLUMNS)).astype("float32")
target = rows[:, 0] * rows[:, 1]

model = keras.Sequential(
    [
        keras.Input((COLUMNS,)),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="adam", loss="mean_squared_error")
model.fit(rows, target, batch_size=BATCH_SIZE, epochs=1_000_000, verbose=2)
with tf.device("/GPU:1"):
    print(model.evaluate(rows, target, verbose=0))

"""A fall detector on sensor readings whose windows are cut in a Python generator.

Defect: `tf.data.Dataset.from_generator` makes every window in Python, one at a time under the
interpreter's lock, and hands it over through a Python call; `prefetch` cannot hide that, because
the model is quicker than the generator.
Fix: keep the readings as one array and cut windows with TensorFlow ops (`tf.data.Dataset.range`
over the starts, then a `map` that slices, with `num_parallel_calls`), or cut them before training.

    tfaudit run sample_models/python_generator.py

expect: 1.8 fail
expect: 5.5 fail
"""

import keras
import numpy as np
import tensorflow as tf

WINDOW = 128
CHANNELS = 6
WINDOWS = 2048
BATCH_SIZE = 32


def record_readings(seed):
    """Readings of a worn sensor, with a jolt at each fall of its wearer, and where those are."""
    rng = np.random.default_rng(seed)
    readings = rng.normal(size=(20_000, CHANNELS)).astype("float32")
    falls = rng.choice(len(readings), size=100, replace=False)
    readings[falls] += 8.0
    return readings, falls


def windows():
    """Random windows, normalised, labelled by whether they hold a fall."""
    readings, falls = record_readings(seed=1)
    rng = np.random.default_rng(2)
    for _ in range(WINDOWS):
        start = int(rng.integers(0, len(readings) - WINDOW))
        window = readings[start : start + WINDOW]
        window = (window - window.mean(axis=0)) / (window.std(axis=0) + 1e-6)
        if rng.random() < 0.5:
            window = window[::-1]
        yield window, float(np.any((falls >= start) & (falls < start + WINDOW)))


keras.utils.set_random_seed(1)

dataset = (
    tf.data.Dataset.from_generator(
        windows,
        output_signature=(
            tf.TensorSpec([WINDOW, CHANNELS], tf.float32),
            tf.TensorSpec([], tf.float32),
        ),
    )
    .batch(BATCH_SIZE, drop_remainder=True)
    .prefetch(tf.data.AUTOTUNE)
)

model = keras.Sequential(
    [
        keras.Input((WINDOW, CHANNELS)),
        keras.layers.Conv1D(16, 5, strides=2, activation="relu"),
        keras.layers.Conv1D(16, 5, strides=2, activation="relu"),
        keras.layers.GlobalMaxPooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(dataset, epochs=3, verbose=2)

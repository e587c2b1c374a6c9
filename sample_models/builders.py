"""A text classifier in module form: `build_model` and `build_dataset`, and nothing that trains.

Defect: batches are padded to their own longest text, so the length of the texts is unknown when the
graph is built. Keras traces it once for any length, but XLA compiles anew for every length.
Fix: `padded_batch(BATCH_SIZE, padded_shapes=([MAX_WORDS], []))`, or `bucket_by_sequence_length`.

    tfaudit run sample_models/builders.py

expect: 5.4 warn
expect: 7.1 manual
expect: 7.4 manual
"""

import keras
import numpy as np
import tensorflow as tf

TEXTS = 4096
MAX_WORDS = 120
VOCABULARY = 2000
BATCH_SIZE = 64


def build_dataset():
    """Batches of texts as word numbers, labelled by topic."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(10, MAX_WORDS + 1, size=TEXTS)
    labels = rng.integers(0, 2, size=TEXTS).astype("float32")
    words = rng.integers(1, VOCABULARY, size=(TEXTS, MAX_WORDS), dtype="int32")
    words[labels == 1.0] |= 1  # the second topic uses odd word numbers only
    return (
        tf.data.Dataset.from_tensor_slices((words, lengths, labels))
        .shuffle(TEXTS)
        .map(lambda text, length, label: (text[:length], label), num_parallel_calls=tf.data.AUTOTUNE)
        .padded_batch(BATCH_SIZE, drop_remainder=True)
        .prefetch(tf.data.AUTOTUNE)
    )


def build_model():
    """Word vectors, their mean, and a small network on it."""
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            keras.layers.Embedding(VOCABULARY, 128),
            keras.layers.Conv1D(128, 5, padding="same", activation="relu"),
            keras.layers.Conv1D(128, 5, padding="same", activation="relu"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
    return model

"""A classifier whose every epoch begins with a wait.

Defect: `shuffle` stands behind the map that does the work, with a buffer as large as an epoch. Nothing
comes out before the whole epoch has been prepared, and then all of it at once.
Fix: shuffle what is cheap, before the map; or let one iterator last through all epochs, with
`.repeat()` and `steps_per_epoch`.

    tfaudit run sample_models/epoch_stalls.py

expect: 1.3 warn
expect: 1.8 fail
"""

import keras
import numpy as np
import tensorflow as tf

SOUNDS = 640
LENGTH = 16_384
BATCH_SIZE = 32


def make_sounds(seed):
    """Noise, half of it with a tone, and whether it has one."""
    rng = np.random.default_rng(seed)
    sounds = rng.normal(size=(SOUNDS, LENGTH)).astype("float32")
    has_tone = rng.random(SOUNDS) < 0.5
    sounds[has_tone] += np.sin(np.arange(LENGTH) * 0.3)
    return sounds, has_tone.astype("float32")


def spectrum(sound, label):
    """How loud each frequency is, on average over the sound."""
    frames = tf.signal.stft(sound, frame_length=512, frame_step=32)
    return tf.reduce_mean(tf.abs(frames), axis=0), label


keras.utils.set_random_seed(1)

dataset = (
    tf.data.Dataset.from_tensor_slices(make_sounds(seed=1))
    .map(spectrum, num_parallel_calls=tf.data.AUTOTUNE)
    .shuffle(SOUNDS)
    .batch(BATCH_SIZE, drop_remainder=True)
    .prefetch(tf.data.AUTOTUNE)
)

model = keras.Sequential(
    [
        keras.Input((257,)),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy")
model.fit(dataset, epochs=20, verbose=2)

"""A classifier of sounds that computes the same spectrograms in every epoch.

Defect: the pipeline is parallel and ahead of the model, and still the model waits for what was computed in
the epoch before, and the one before that.
Fix: `.cache()` behind the map, or store the spectrograms; more cores would only make it cost more.

    tfaudit run sample_models/spectrograms.py

expect: 1.8 fail
expect: 4.2 warn
"""

import keras
import numpy as np
import tensorflow as tf

SOUNDS = 1024
LENGTH = 8192
CLASSES = 4
BATCH_SIZE = 32


def make_sounds(seed):
    """Noisy tones, and which of the tones each is."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, SOUNDS)
    tones = np.sin(np.arange(LENGTH) * 0.05 * (1 + labels[:, None]))
    return (tones + rng.normal(0, 0.3, size=tones.shape)).astype("float32"), labels


def spectrogram(sound, label):
    """Loudness over time and frequency, in decibels."""
    frames = tf.abs(tf.signal.stft(sound, frame_length=256, frame_step=32))
    return 20.0 * tf.math.log(frames + 1e-6)[:, :128, None], label


keras.utils.set_random_seed(1)

dataset = (
    tf.data.Dataset.from_tensor_slices(make_sounds(seed=1))
    .shuffle(SOUNDS)
    .map(spectrogram, num_parallel_calls=tf.data.AUTOTUNE)
    .batch(BATCH_SIZE, drop_remainder=True)
    .prefetch(tf.data.AUTOTUNE)
)

model = keras.Sequential(
    [
        keras.Input((249, 128, 1)),
        keras.layers.Conv2D(8, 3, strides=4, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(CLASSES),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(dataset, epochs=3, verbose=2)

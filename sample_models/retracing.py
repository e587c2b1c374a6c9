"""A text classifier with its own training loop, traced again for nearly every batch.

Defect: batches are padded to their own longest text, so their shapes differ, and a `@tf.function`
builds a new graph for every shape it has not seen, which takes far longer than the step itself.
Fix: pad to one length (`padded_batch(BATCH_SIZE, padded_shapes=([MAX_WORDS], []))`) or to a few
(`bucket_by_sequence_length`), or at least decorate with `@tf.function(reduce_retracing=True)`.

    tfaudit run sample_models/retracing.py:job

expect: 5.4 fail
"""

import keras
import numpy as np
import tensorflow as tf

import tfaudit

TEXTS = 4096
MIN_WORDS = 20
MAX_WORDS = 600
VOCABULARY = 5000
BATCH_SIZE = 32


def make_texts(seed):
    """Texts of very different lengths as word numbers, and which of two topics each is about."""
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.lognormal(4.5, 0.6, size=TEXTS), MIN_WORDS, MAX_WORDS).astype("int64")
    labels = rng.integers(0, 2, size=TEXTS)
    words = rng.integers(1, VOCABULARY, size=lengths.sum(), dtype="int32")
    topics = np.repeat(labels, lengths)
    words[topics == 1] |= 1  # the second topic uses odd word numbers only
    return tf.RaggedTensor.from_row_lengths(words, lengths), labels.astype("float32")


def build_dataset():
    """Batches of texts, each padded to the longest text in it."""
    texts, labels = make_texts(seed=1)
    return (
        tf.data.Dataset.range(TEXTS)
        .shuffle(TEXTS)
        .map(lambda i: (texts[i], tf.gather(labels, i)), num_parallel_calls=tf.data.AUTOTUNE)
        .padded_batch(BATCH_SIZE, drop_remainder=True)
        .prefetch(tf.data.AUTOTUNE)
    )


def build_model():
    """Word vectors, one convolution, and the strongest answer anywhere in the text."""
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            keras.layers.Embedding(VOCABULARY, 32),
            keras.layers.Conv1D(32, 5, padding="same", activation="relu"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(1),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.BinaryCrossentropy(from_logits=True),
    )
    model.optimizer.build(model.trainable_variables)
    return model


@tf.function
def train_step(model, batch):
    """Train on one batch and return its loss."""
    texts, labels = batch
    with tf.GradientTape() as tape:
        answers = tf.squeeze(model(texts, training=True), axis=-1)
        loss = model.loss(labels, answers)
    gradients = tape.gradient(loss, model.trainable_variables)
    model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


def job():
    """What is trained, on what and how."""
    keras.utils.set_random_seed(1)
    return tfaudit.Job(build_model(), build_dataset(), train_step=train_step)


def main():
    training = job()
    for step, batch in enumerate(training.dataset.take(40), start=1):
        loss = training.train_step(training.model, batch)
        if step % 10 == 0:
            print(f"step {step}: loss {float(loss):.3f}")


if __name__ == "__main__":
    main()

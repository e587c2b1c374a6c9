"""An everyday script: NumPy arrays, argparse, `fit` under the main guard.

Defect: nothing but the loss is watched. Throughput is not reported, a failing run is not stopped
early, and no experiment is recorded.
Fix: `tfaudit.ThroughputCallback()` and `keras.callbacks.EarlyStopping(...)` among the callbacks,
and a tracker such as MLflow.

    tfaudit run sample_models/plain_script.py -- --epochs 2 --batch-size 128

expect: 1.1 warn
expect: 7.1 warn
expect: 7.4 warn
"""

import argparse

import keras
import numpy as np

CUSTOMERS = 20_000
FIELDS = 24


def make_customers(seed):
    """Customers as rows of numbers, and whether each of them left."""
    rng = np.random.default_rng(seed)
    fields = rng.normal(size=(CUSTOMERS, FIELDS)).astype("float32")
    leaning = fields @ rng.normal(size=FIELDS) + 2.0 * fields[:, 0] * fields[:, 1]
    return fields, (leaning > 0.0).astype("float32")


def build_model():
    """A small network on the fields."""
    model = keras.Sequential(
        [
            keras.Input((FIELDS,)),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dropout(0.1),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
    return model


def main():
    parser = argparse.ArgumentParser(description="Predict which customers leave.")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=128)
    arguments = parser.parse_args()

    keras.utils.set_random_seed(1)
    fields, left = make_customers(seed=1)
    model = build_model()
    model.fit(fields, left, batch_size=arguments.batch_size, epochs=arguments.epochs, verbose=2)


if __name__ == "__main__":
    main()

"""How much data an epoch goes through, as far as fit knows beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfaudit.program.epochs import training, validation
from tfaudit.records import Epoch, Stage


class Dataset:
    """As much of a ``tf.data.Dataset`` as is asked."""

    def __init__(self, count: int) -> None:
        self.count = count

    def cardinality(self) -> int:
        return self.count


class Batches:
    """As much of a ``PyDataset`` as is asked."""

    batch_size = 8

    def __init__(self, count: int | None) -> None:
        self.count = count

    def __len__(self) -> int:
        if self.count is None:
            raise RuntimeError("the user's own code fails")
        return self.count


X = np.zeros((100, 3))
BATCHED = (Stage(op="map"), Stage(op="batch", batch_size=16), Stage(op="prefetch"))
ENDLESS, UNKNOWN = Dataset(-1), Dataset(-2)

TRAINING: dict[str, tuple[Any, dict[str, Any], tuple[Stage, ...], Epoch]] = {
    "a dataset": (Dataset(7), {}, BATCHED, Epoch(7, 16)),
    "a dataset of which the stages are not known": (Dataset(7), {}, (), Epoch(7, None)),
    "an endless one": (ENDLESS, {}, BATCHED, Epoch(None, 16)),
    "an endless one with steps": (ENDLESS, {"steps_per_epoch": 5}, BATCHED, Epoch(5, 16)),
    "one of unknown length": (UNKNOWN, {}, BATCHED, Epoch(None, 16)),
    "a batch within another stage": (
        Dataset(7),
        {},
        (Stage(op="batch", batch_size=4, inside="flat_map"),),
        Epoch(7, None),
    ),
    "arrays": (X, {"batch_size": 10}, (), Epoch(10, 10)),
    "arrays with the default batch size": (X, {}, (), Epoch(4, 32)),
    "a dict of arrays": ({"a": X, "b": X}, {"batch_size": 10}, (), Epoch(10, 10)),
    "arrays with some held out": (X, {"batch_size": 10, "validation_split": 0.2}, (), Epoch(8, 10)),
    "held out, but other data is given": (
        X,
        {"batch_size": 10, "validation_split": 0.2, "validation_data": (X, X)},
        (),
        Epoch(10, 10),
    ),
    "a list of numbers": ([1.0, 2.0], {}, (), Epoch()),
    "a PyDataset": (Batches(9), {}, (), Epoch(9, 8)),
    "a PyDataset whose length fails": (Batches(None), {}, (), Epoch(None, 8)),
    "a generator": (iter([]), {}, (), Epoch()),
    "a generator with steps": (iter([]), {"steps_per_epoch": 5}, (), Epoch(5)),
    "nothing": (None, {}, (), Epoch()),
}


@pytest.mark.parametrize("case", TRAINING)
def test_an_epoch_of_training(case: str) -> None:
    data, fit, stages, epoch = TRAINING[case]
    assert training(data, fit, stages) == epoch


VALIDATION: dict[str, tuple[dict[str, Any], tuple[Stage, ...], Epoch | None]] = {
    "none": ({}, (), None),
    "None": ({"validation_data": None, "validation_split": 0.0}, (), None),
    "a dataset": ({"validation_data": Dataset(3)}, BATCHED, Epoch(3, 16)),
    "a dataset of which some is used": (
        {"validation_data": Dataset(30), "validation_steps": 2},
        BATCHED,
        Epoch(2, 16),
    ),
    "arrays": ({"validation_data": (X, X), "batch_size": 10}, (), Epoch(10, 10)),
    "arrays with a batch size of their own": (
        {"validation_data": (X, X), "batch_size": 10, "validation_batch_size": 50},
        (),
        Epoch(2, 50),
    ),
    "some of the arrays": ({"validation_split": 0.2, "batch_size": 10}, (), Epoch(2, 10)),
    "a generator": ({"validation_data": iter([])}, (), Epoch()),
}


@pytest.mark.parametrize("case", VALIDATION)
def test_an_evaluation_within_fit(case: str) -> None:
    fit, stages, epoch = VALIDATION[case]
    assert validation(X, fit, stages) == epoch

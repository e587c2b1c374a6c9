"""A Keras callback that reports samples per second, and per dollar, while training goes on."""

from __future__ import annotations

import importlib
import os
import time
from typing import Any

from .measure import SAMPLES, StepProbe

# With this variable set, tf.keras is Keras 2, whose callbacks are another class.
_LEGACY = os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true")
_CALLBACK: Any = importlib.import_module("tf_keras" if _LEGACY else "keras").callbacks.Callback


class ThroughputCallback(_CALLBACK):  # type: ignore[misc]
    """Adds ``samples_per_s``, and with a price ``samples_per_usd``, to the logs of each batch and epoch.

    So they appear in the progress bar, in ``History`` and, when this callback comes before it, in
    TensorBoard. ``usd_per_hour`` is what the machine costs. Samples are counted from the batches
    themselves; the first step, which traces and compiles, is left out.
    """

    #: Tells Keras that it may go on with the next step while this callback still works.
    async_safe = True

    def __init__(self, usd_per_hour: float | None = None) -> None:
        super().__init__()
        if usd_per_hour is not None and not usd_per_hour > 0:
            raise ValueError(f"usd_per_hour must be positive, not {usd_per_hour!r}.")
        self.usd_per_hour = usd_per_hour
        self._sizes: list[Any] = []
        self._samples = 0
        self._began_s: float | None = None

    def set_model(self, model: Any) -> None:
        """Called by ``fit`` before it builds its train function, which the probe thus gets into."""
        super().set_model(model)
        if not isinstance(model.__dict__.get("train_step"), StepProbe):
            object.__setattr__(model, "train_step", StepProbe(model.train_step))

    def on_train_begin(self, logs: Any = None) -> None:
        """Wrap the train function, so that the sizes are taken out of the logs before anyone sees them."""
        function = self.model.train_function
        self._began_s = None
        if function is None:
            return
        inner = getattr(function, "counted", function)

        def count(*args: Any) -> Any:
            logs = inner(*args)
            if isinstance(logs, dict) and SAMPLES in logs:
                self._sizes.append(logs.pop(SAMPLES))
            return logs

        count.counted = inner  # type: ignore[attr-defined]
        self.model.train_function = count

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch:
            self._restart()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._began_s is None:
            self._restart()
        else:
            self._report(logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._report(logs)

    def _restart(self) -> None:
        self._sizes.clear()
        self._samples = 0
        self._began_s = time.perf_counter()

    def _report(self, logs: Any) -> None:
        while self._sizes:
            self._samples += int(self._sizes.pop())
        elapsed_s = time.perf_counter() - (self._began_s or 0.0)
        if logs is None or not self._samples or elapsed_s <= 0:
            return
        logs["samples_per_s"] = self._samples / elapsed_s
        if self.usd_per_hour:
            logs["samples_per_usd"] = logs["samples_per_s"] * 3600 / self.usd_per_hour

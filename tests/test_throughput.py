"""The callback for users: samples per second and per dollar in the logs."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.tensorflow

SCRIPT = """
import json, time
import keras, numpy as np
from tfaudit import ThroughputCallback

class Slow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.02)
        seen.append(sorted(logs))

seen = []
m = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
m.compile("sgd", "mse")
x, y = np.ones((60, 4)), np.ones((60, 1))
options = dict(batch_size=8, verbose=0, shuffle=False)
first = m.fit(x, y, epochs=3, callbacks=[ThroughputCallback(usd_per_hour=2.0), Slow()], **options)
again = m.fit(x, y, epochs=2, callbacks=[ThroughputCallback()], **options)
without = m.fit(x, y, epochs=1, **options)
print(json.dumps([first.history, again.history, without.history, seen]))
"""


def test_rates_are_in_the_logs_of_every_epoch(tmp_path: Path) -> None:
    """60 samples in 8 steps of at least 20 ms: fewer than 375 a second; a later fit without has no trace."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    first, again, without, seen = json.loads(done.stdout)
    assert sorted(first) == ["loss", "samples_per_s", "samples_per_usd"]
    assert len(first["samples_per_s"]) == 3
    assert 50 < first["samples_per_s"][-1] < 375
    for per_s, per_usd in zip(first["samples_per_s"], first["samples_per_usd"], strict=True):
        assert per_usd == pytest.approx(per_s * 1800)
    assert sorted(again) == ["loss", "samples_per_s"]
    assert sorted(without) == ["loss"]
    assert seen[0] == ["loss"]
    assert seen[-1] == ["loss", "samples_per_s", "samples_per_usd"]


def test_an_audit_keeps_it(program: Callable, measured: Callable) -> None:
    """It stays in every variant and hinders none of the counting."""
    path = program(
        textwrap.dedent("""
        import keras, numpy as np, tfaudit
        m = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
        m.compile("sgd", "mse")
        x, y = np.ones((60, 4)), np.ones((60, 1))
        m.fit(x, y, batch_size=8, verbose=0, callbacks=[tfaudit.ThroughputCallback()])
        """)
    )
    results = measured(str(path), "input-only", steps=80)
    for result in results.values():
        assert result.failure is None, result.failure
        assert sum(block.samples for block in result.blocks) == 600
    assert [(fact.name, fact.kept) for fact in results["baseline"].program.callbacks] == [
        ("ThroughputCallback", True)
    ]


def test_a_price_must_be_one() -> None:
    code = "import tfaudit; tfaudit.ThroughputCallback(usd_per_hour=0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "usd_per_hour must be positive, not 0." in done.stderr

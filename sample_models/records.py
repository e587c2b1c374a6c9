"""Prepare the sound clips that some samples read from files.

Not a model, so there is nothing to audit. `clips(name, write)` fills a folder of that name once, in
$TFAUDIT_DEMO_DATA with `-clips` behind it, else in a tfaudit-clips folder in the user's cache.
"""

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np

CLASSES = 4


def folder() -> Path:
    """Where prepared clips are kept."""
    if demo := os.environ.get("TFAUDIT_DEMO_DATA"):
        return Path(f"{demo}-clips")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tfaudit-clips"


def clip(number, length):
    """A tone with noise, as so many 16-bit integers, and which of the tones it is."""
    rng = np.random.default_rng(number)
    label = number % CLASSES
    tone = np.sin(np.arange(length) * 0.05 * (1 + label))
    return (3000 * tone + rng.normal(0, 300, length)).astype("int16"), label


def clips(name, write) -> Path:
    """The folder of that name; `write(folder)` fills it if it is not there yet."""
    done = folder() / name
    if done.exists():
        return done
    done.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=done.parent))
    try:
        write(unfinished)
        unfinished.replace(done)
    except OSError:
        if not done.exists():  # else another process was faster
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return done

"""Where the money goes when a Keras model trains on TensorFlow, and what to change: by measuring."""

from typing import Any

from .job import Job

__version__ = "0.1.0"

__all__ = ["Job", "ThroughputCallback", "__version__"]


def __getattr__(name: str) -> Any:
    # The callback's base class is Keras's, which must not be imported by the command line.
    if name == "ThroughputCallback":
        from .throughput import ThroughputCallback

        return ThroughputCallback
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

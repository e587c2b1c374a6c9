"""What sampling the machine costs: reading counters around a block, and polling a GPU during it.

The counters are read while the child is frozen, so their cost is the audit's, not the timed steps'. Most of
it goes into finding the child's descendants among all processes of the machine. The polling thread runs
beside the steps. NVML is faked: what the driver itself needs for an answer comes on top.

    python benchmarks/sampling.py [--pairs 200] [--seconds 10]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from types import SimpleNamespace
from typing import Any

import psutil

from tfaudit.sampling import Sampler


def pair_ms(sampler: Sampler) -> float:
    """One begin and end."""
    began = time.perf_counter()
    sampler.begin(os.getpid())
    sampler.end()
    return (time.perf_counter() - began) * 1e3


def cpu_per_s(sampler: Sampler, seconds: float) -> float:
    """CPU seconds per second of this process while it does nothing but sample one long block."""
    began, used = time.monotonic(), time.process_time()
    sampler.begin(os.getpid())
    time.sleep(seconds)
    sampler.end()
    return (time.process_time() - used) / (time.monotonic() - began)


def fake_nvml(gpus: int) -> Any:
    """In the place of pynvml: GPUs that answer at once."""
    answers = {
        "HandleByIndex": 0,
        "Name": "GPU",
        "UtilizationRates": SimpleNamespace(gpu=50),
        "MemoryInfo": SimpleNamespace(used=1, total=2),
        "PowerUsage": 100_000,
        "Temperature": 50,
        "CurrentClocksThrottleReasons": 0,
        "Count": gpus,
    }
    queries = {f"nvmlDeviceGet{name}": lambda *_, answer=answer: answer for name, answer in answers.items()}
    return SimpleNamespace(nvmlInit=lambda: None, nvmlShutdown=lambda: None, **queries)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    for gpus in (0, 1, 8):
        sys.modules["pynvml"] = fake_nvml(gpus)
        sampler = Sampler()
        median = statistics.median(pair_ms(sampler) for _ in range(arguments.pairs))
        print(f"{gpus} GPUs: begin and end {median:.2f} ms (median of {arguments.pairs})", end=", ")
        print(f"{1e3 * cpu_per_s(sampler, arguments.seconds):.2f} ms of CPU per second of a block")
        sampler.close()
    print(f"with {len(psutil.pids())} processes on {psutil.cpu_count()} cores")


if __name__ == "__main__":
    main()

"""The machine that the audit runs on, told without TensorFlow."""

from __future__ import annotations

import contextlib
import os
import platform
from importlib import metadata
from pathlib import Path

import psutil

from .records import Environment

#: Our own side of a measurement; TensorFlow and Keras are told by the children.
PACKAGES = ("tfaudit", "tensorboard-plugin-profile", "pandas")


#: Where control groups, version 2 and 1, keep a limit of memory and what is used of it.
CGROUP_MEMORY = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def available_memory_bytes() -> int:
    """Memory that is free for more processes: the machine's, or what a container's limit leaves."""
    free = [int(psutil.virtual_memory().available)]
    for limit, used in CGROUP_MEMORY:
        with contextlib.suppress(OSError, ValueError):  # there is no such group, or "max"
            free.append(int(Path(limit).read_text()) - int(Path(used).read_text()))
    return max(0, min(free))


#: What Linux shows of accelerators: NVIDIA's, AMD's, TPUs, and any of them in Windows' subsystem.
ACCELERATORS = ("nvidia[0-9]*", "kfd", "accel*", "vfio/[0-9]*", "dxg")


def may_have_accelerator(devices: Path = Path("/dev")) -> bool:
    """Whether this looks like a machine with one; only TensorFlow knows whether it can use it."""
    apple = platform.system() == "Darwin" and platform.machine() == "arm64"
    return apple or any(any(devices.glob(name)) for name in ACCELERATORS)


def describe() -> Environment:
    """This machine and our own versions. Devices are for the children to see."""
    return Environment(
        machine=platform.node(),
        os=platform.platform(terse=True),
        cpu=_cpu(),
        cores=_cores(),
        memory_bytes=psutil.virtual_memory().total,
        devices=(),
        versions={"python": platform.python_version(), **_versions()},
    )


def _versions() -> dict[str, str]:
    return {name: version for name in PACKAGES if (version := installed_version(name))}


def installed_version(package: str) -> str | None:
    """The version of an installed distribution; None when there is none of that name."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _cores() -> int:
    """Cores that this process may use: a container or ``taskset`` may allow fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

"""What the machine does while one child measures a block, seen from the parent.

What has a counter is read before the child is thawed and after it is frozen again, and so costs the timed
steps nothing. Only the gauges of a GPU have none: a thread polls them, where there is a driver to ask.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psutil
from msgspec.structs import replace

from . import machine
from .records import DeviceUsage, Usage
from .utilisation import combined

T = TypeVar("T")
N = TypeVar("N", int, float)

POLL_S = 0.1

#: Utilisation and, on some GPUs, power are means over the last 1/6 to 1 s (NVML's nvmlUtilization_t): a
#: reading sooner after the thaw tells of whoever ran before.
SETTLE_S = 1 / 6

#: A driver that hangs must not hang the audit.
LONGEST_READING_S = 2.0

#: Why the clocks are held back (bits of NVML's clocks event reasons). Its other reasons are a device without
#: work and what someone set.
THROTTLES = {0x04: "power cap", 0x08: "hardware slowdown", 0x20: "heat", 0x40: "heat", 0x80: "power brake"}

#: A core's time that is neither idle nor iowait; what its guests take is in the user's.
BUSY = ("user", "nice", "system", "irq", "softirq", "steal")

CGROUPS = Path("/sys/fs/cgroup")


class Sampler:
    """Tells of the time between `begin` and `end`. What a source lacks or refuses raises nothing."""

    def __init__(self) -> None:
        self._cores = allowed_cores()
        self._quota = core_quota()
        self._gpus = open_gpus()
        self._poll: Poll | None = None
        self._pid = 0
        self._job_cpu_s: float | None = None
        self._before = read_counters(self._cores)

    def begin(self, pid: int) -> None:
        """Call just before the child is thawed."""
        self._end_poll()
        self._pid = pid
        # Finding the child's descendants takes longest, but their counters stand still while they are frozen.
        # The machine's do not, and so are read last here and first at the end.
        self._job_cpu_s = _sum(cpu_s, family(pid))
        self._before = read_counters(self._cores)
        if self._gpus is not None:
            self._poll = Poll(self._gpus)
            self._poll.start()

    def end(self) -> Usage:
        """Call just after the child is frozen again, or has ended."""
        before, after = self._before, read_counters(self._cores)
        devices = self._end_poll()
        processes = family(self._pid)
        disk_read, disk_written = _grown_bytes(before.disk_bytes, after.disk_bytes)
        sent, received = _grown_bytes(before.network_bytes, after.network_bytes)
        return Usage(
            duration_s=after.clock_s - before.clock_s,
            busy_core_s=tuple(map(_grown_s, before.busy_core_s, after.busy_core_s)),
            iowait_core_s=_grown_if_told(before.iowait_core_s, after.iowait_core_s),
            core_limit=core_limit(len(after.busy_core_s), self._quota),
            job_cpu_s=_grown_if_told(self._job_cpu_s, _sum(cpu_s, processes)),
            job_memory_bytes=_sum(resident_bytes, processes),
            available_memory_bytes=_told(machine.available_memory_bytes),
            disk_read_bytes=disk_read,
            disk_written_bytes=disk_written,
            network_sent_bytes=sent,
            network_received_bytes=received,
            devices=devices,
        )

    def close(self) -> None:
        """Let go of the driver."""
        self._end_poll()
        if self._gpus is not None:
            self._gpus.close()
            self._gpus = None

    def _end_poll(self) -> tuple[DeviceUsage, ...]:
        poll, self._poll = self._poll, None
        if poll is None:
            return ()
        if not poll.end():
            self._gpus = None  # it hangs: ask no more
        return poll.usage()


def _told(ask: Callable[..., T], *arguments: Any) -> T | None:
    """What a source tells, or None.

    psutil and drivers raise errors of many kinds, and none of them is worth the audit.
    """
    try:
        return ask(*arguments)
    except Exception:
        return None


# --------------------------------------------------------------------------------------------------
# The machine's counters


class Counters(NamedTuple):
    """What only ever grows. Disk bytes are read and written, network bytes sent and received."""

    clock_s: float
    busy_core_s: tuple[float, ...]
    iowait_core_s: float | None
    disk_bytes: tuple[int, int] | None
    network_bytes: tuple[int, int] | None


def read_counters(cores: Collection[int]) -> Counters:
    """The counters now; those of the given cores, or of all where none are given."""
    clock_s = time.monotonic()
    times = _told(core_times, cores) or ()
    iowait = [core.iowait for core in times if hasattr(core, "iowait")]
    return Counters(
        clock_s=clock_s,
        busy_core_s=tuple(sum(getattr(core, kind, 0.0) for kind in BUSY) for core in times),
        iowait_core_s=sum(iowait) if iowait else None,
        disk_bytes=_told(disk_bytes),
        network_bytes=_told(network_bytes),
    )


def core_times(cores: Collection[int]) -> list[Any]:
    """psutil's times of the given cores; of all where these cannot be told apart."""
    times = list(psutil.cpu_times(percpu=True))
    return [times[core] for core in sorted(cores)] if cores and max(cores) < len(times) else times


def allowed_cores() -> Collection[int]:
    """The cores that this process and so its children may run on; empty where the system does not tell."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()


def core_quota(cgroups: Path = CGROUPS) -> float | None:
    """How many cores' time this container may use, by either version of control groups; None: as it likes."""
    with suppress(OSError, ValueError):
        quota, period = (cgroups / "cpu.max").read_text().split()
        return int(quota) / int(period)  # "max" is no number
    with suppress(OSError, ValueError):
        quota, period = ((cgroups / f"cpu/cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return int(quota) / int(period) if int(quota) > 0 else None
    return None


def core_limit(cores: int, quota: float | None) -> float | None:
    """How many cores the job may use at once; None when nothing is known of them."""
    return min(float(cores), quota or cores) if cores else None


def disk_bytes() -> tuple[int, int] | None:
    total = psutil.disk_io_counters()  # None where a container shows no disk
    return (total.read_bytes, total.write_bytes) if total else None


def network_bytes() -> tuple[int, int]:
    cards = psutil.net_io_counters(pernic=True).items()
    real = [card for name, card in cards if name not in ("lo", "lo0") and not name.startswith("Loopback")]
    return sum(card.bytes_sent for card in real), sum(card.bytes_recv for card in real)


def _grown_s(before: float, after: float) -> float:
    """Seconds between two readings; counters tick in hundredths."""
    return round(max(0.0, after - before), 3)


def _grown_if_told(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else _grown_s(before, after)


def _grown_bytes(
    before: tuple[int, int] | None, after: tuple[int, int] | None
) -> tuple[int, int] | tuple[None, None]:
    if before is None or after is None:
        return None, None
    return max(0, after[0] - before[0]), max(0, after[1] - before[1])


# --------------------------------------------------------------------------------------------------
# The child's own


def family(pid: int) -> list[psutil.Process]:
    """The child and all that it started; empty when it is gone."""
    child = _told(psutil.Process, pid)
    return [child, *(_told(child.children, True) or ())] if child else []


def cpu_s(process: psutil.Process) -> float:
    """Its time on a core, and that of its children that have ended, which the sum would lose."""
    times = process.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


def resident_bytes(process: psutil.Process) -> int:
    return int(process.memory_info().rss)


def _sum(measure: Callable[[psutil.Process], N], processes: Iterable[psutil.Process]) -> N | None:
    """Over the processes that tell; None when none does."""
    told = [value for process in processes if (value := _told(measure, process)) is not None]
    return sum(told[1:], start=told[0]) if told else None


# --------------------------------------------------------------------------------------------------
# GPUs


class Gpus:
    """The GPUs that the job may use, through NVML."""

    def __init__(self, nvml: Any, handles: Iterable[Any]) -> None:
        self._nvml = nvml
        self._handles = tuple(handles)

    def read(self) -> tuple[DeviceUsage, ...]:
        """What each does now."""
        return tuple(map(self._read, self._handles))

    def _read(self, handle: Any) -> DeviceUsage:
        def ask(query: str, *arguments: Any) -> Any:
            return _told(lambda: getattr(self._nvml, f"nvmlDeviceGet{query}")(handle, *arguments))

        rates, memory, power_mw = ask("UtilizationRates"), ask("MemoryInfo"), ask("PowerUsage")
        reasons = ask("CurrentClocksThrottleReasons") or 0
        return DeviceUsage(
            name=ask("Name") or "GPU",
            utilisation_fraction=rates and rates.gpu / 100,
            memory_used_bytes=memory and memory.used,
            memory_total_bytes=memory and memory.total,
            power_w=None if power_mw is None else power_mw / 1000,
            temperature_c=ask("Temperature", 0),  # of the chip
            throttled=tuple(dict.fromkeys(word for bit, word in THROTTLES.items() if reasons & bit)),
        )

    def close(self) -> None:
        _told(self._nvml.nvmlShutdown)


def open_gpus() -> Gpus | None:
    """NVML's GPUs; None without the package, the driver, or a GPU that the job may use."""
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except Exception:
        return None
    handles = _told(visible, nvml, os.environ.get("CUDA_VISIBLE_DEVICES"))
    return Gpus(nvml, handles) if handles else None


def visible(nvml: Any, chosen: str | None) -> list[Any]:
    """The devices that CUDA shows a job: all, or those chosen up to the first that there is not."""
    every = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    if chosen is None:
        return every
    found: list[Any] = []
    for word in chosen.split(","):
        handle = _chosen(nvml, every, word.strip())
        if handle is None:
            break
        found.append(handle)
    return found


def _chosen(nvml: Any, every: Sequence[Any], word: str) -> Any:
    """A device by its index, by the beginning of its UUID, or (a slice of one) by its whole UUID."""
    if word.isdecimal():
        return every[int(word)] if int(word) < len(every) else None
    if word.startswith("GPU-"):
        fitting = [each for each in every if nvml.nvmlDeviceGetUUID(each).startswith(word)]
        return fitting[0] if len(fitting) == 1 else None
    return _told(nvml.nvmlDeviceGetHandleByUUID, word)


class Poll(threading.Thread):
    """Reads the GPUs ten times a second until its end, and once more then, when the child is frozen."""

    def __init__(self, gpus: Gpus) -> None:
        super().__init__(name="tfaudit-gpus", daemon=True)
        self._gpus = gpus
        self._over = threading.Event()
        self._began_s = time.monotonic()
        self._readings: list[tuple[DeviceUsage, ...]] = []

    def run(self) -> None:
        while not self._over.wait(POLL_S):
            self._read()
        self._read()

    def _read(self) -> None:
        elapsed_s = time.monotonic() - self._began_s
        devices = self._gpus.read()
        if elapsed_s < SETTLE_S:
            devices = tuple(replace(each, utilisation_fraction=None, power_w=None) for each in devices)
        self._readings.append(devices)

    def end(self) -> bool:
        """Stop; False when the driver does not answer."""
        self._over.set()
        self.join(LONGEST_READING_S)
        return not self.is_alive()

    def usage(self) -> tuple[DeviceUsage, ...]:
        """All readings in one of each device."""
        return combined([(1.0, devices) for devices in list(self._readings)])

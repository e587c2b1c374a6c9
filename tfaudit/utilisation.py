"""How busy the machine was over all of a variant's blocks: functions of records alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from .records import Block, DeviceUsage, Record, Usage

T = TypeVar("T", int, float)

#: With nine tenths of the cores busy on average there are moments in which all of them are.
SATURATED = 0.90

#: A quarter of the busy time that goes to others is no longer background noise.
OTHERS_WORTH_TELLING = 0.25


class Load(Record, frozen=True):
    """What the machine did on average over a variant's blocks; None for what no block tells.

    ``busy_cores`` are how many of the ``cores`` that the job may run on were busy, ``iowait_cores`` how many
    waited for a disk, ``job_cores`` how many the job itself kept busy. Memory is at its tightest.
    """

    cores: int
    core_limit: float | None = None
    busy_cores: float | None = None
    iowait_cores: float | None = None
    job_cores: float | None = None
    job_memory_bytes: int | None = None
    available_memory_bytes: int | None = None
    disk_read_bytes_per_s: float | None = None
    disk_written_bytes_per_s: float | None = None
    network_sent_bytes_per_s: float | None = None
    network_received_bytes_per_s: float | None = None
    devices: tuple[DeviceUsage, ...] = ()

    @property
    def busy_fraction(self) -> float | None:
        """How much of the cores was busy, or of its quota the job, whichever is nearer to its limit."""
        machine = _share(self.busy_cores, self.cores)
        quota = _share(self.job_cores, self.core_limit)
        return _capped(_largest((machine, quota)))

    @property
    def iowait_fraction(self) -> float | None:
        return _capped(_share(self.iowait_cores, self.cores))

    @property
    def others_fraction(self) -> float | None:
        """The share of the busy time that was other processes' or, in a virtual machine, neighbours'."""
        own = _share(self.job_cores, self.busy_cores)
        return None if own is None else max(0.0, 1 - own)  # clocks tick: the job may seem busier than all

    @property
    def is_crowded(self) -> bool:
        """Whether other processes take much of the busy time."""
        return (self.others_fraction or 0.0) >= OTHERS_WORTH_TELLING

    @property
    def device_fraction(self) -> float | None:
        """How much of the time a kernel ran, as NVML tells, on average over the devices."""
        told = [each.utilisation_fraction for each in self.devices if each.utilisation_fraction is not None]
        return sum(told) / len(told) if told else None


def load(blocks: Iterable[Block]) -> Load | None:
    """The blocks' usage in one; None when none carries any."""
    usages = [block.usage for block in blocks if block.usage is not None]
    if not usages:
        return None
    return Load(
        cores=max(len(usage.busy_core_s) for usage in usages),
        core_limit=_least(usage.core_limit for usage in usages),
        busy_cores=_per_second(usages, lambda usage: sum(usage.busy_core_s) if usage.busy_core_s else None),
        iowait_cores=_per_second(usages, lambda usage: usage.iowait_core_s),
        job_cores=_per_second(usages, lambda usage: usage.job_cpu_s),
        job_memory_bytes=_largest(usage.job_memory_bytes for usage in usages),
        available_memory_bytes=_least(usage.available_memory_bytes for usage in usages),
        disk_read_bytes_per_s=_per_second(usages, lambda usage: usage.disk_read_bytes),
        disk_written_bytes_per_s=_per_second(usages, lambda usage: usage.disk_written_bytes),
        network_sent_bytes_per_s=_per_second(usages, lambda usage: usage.network_sent_bytes),
        network_received_bytes_per_s=_per_second(usages, lambda usage: usage.network_received_bytes),
        devices=combined([(usage.duration_s, usage.devices) for usage in usages]),
    )


def combined(readings: Sequence[tuple[float, tuple[DeviceUsage, ...]]]) -> tuple[DeviceUsage, ...]:
    """Weighted readings of the same devices as one reading of each."""
    weights = [weight for weight, devices in readings if devices]
    of_each = zip(*(devices for _, devices in readings if devices), strict=False)
    return tuple(_one_device(weights, told) for told in of_each)


def _one_device(weights: Sequence[float], told: Sequence[DeviceUsage]) -> DeviceUsage:
    return DeviceUsage(
        name=told[0].name,
        utilisation_fraction=_mean(weights, [each.utilisation_fraction for each in told]),
        memory_used_bytes=_largest(each.memory_used_bytes for each in told),
        memory_total_bytes=_largest(each.memory_total_bytes for each in told),
        power_w=_mean(weights, [each.power_w for each in told]),
        temperature_c=_largest(each.temperature_c for each in told),
        throttled=tuple(dict.fromkeys(reason for each in told for reason in each.throttled)),
    )


# --------------------------------------------------------------------------------------------------
# Sums over what is told, leaving out what is not


def _per_second(usages: Iterable[Usage], amount: Callable[[Usage], float | None]) -> float | None:
    told = [(value, usage.duration_s) for usage in usages if (value := amount(usage)) is not None]
    return _share(sum(value for value, _ in told), sum(seconds for _, seconds in told))


def _mean(weights: Iterable[float], values: Iterable[float | None]) -> float | None:
    told = [(weight, value) for weight, value in zip(weights, values, strict=True) if value is not None]
    return _share(sum(weight * value for weight, value in told), sum(weight for weight, _ in told))


def _share(part: float | None, whole: float | None) -> float | None:
    """Rounded, so that what is 0.95 in every block is no less over all of them."""
    return round(part / whole, 6) if part is not None and whole else None


def _capped(share: float | None) -> float | None:
    return None if share is None else min(1.0, share)


def _largest(values: Iterable[T | None]) -> T | None:
    return max((value for value in values if value is not None), default=None)


def _least(values: Iterable[T | None]) -> T | None:
    return min((value for value in values if value is not None), default=None)

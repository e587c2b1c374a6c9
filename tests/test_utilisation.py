"""A variant's blocks in one: what is told is averaged over its time, what is not is left out."""

from __future__ import annotations

import pytest
from checks.builders import block, usage

from tfaudit.records import DeviceUsage, Usage
from tfaudit.utilisation import Load, combined, load


def over(*usages: Usage | None) -> Load:
    found = load(block(100.0, usage=each) for each in usages)
    assert found is not None
    return found


def test_without_usage_there_is_no_load() -> None:
    assert load([]) is None
    assert load([block(100.0)]) is None


def test_longer_blocks_count_for_more() -> None:
    found = over(
        usage(duration_s=1.0, busy_core_s=(1.0, 1.0), job_cpu_s=1.0, iowait_core_s=0.0, disk_read_bytes=100),
        None,
        usage(duration_s=3.0, busy_core_s=(1.0, 0.0), job_cpu_s=0.0, iowait_core_s=2.0, disk_read_bytes=300),
    )
    assert (found.cores, found.busy_cores, found.job_cores, found.iowait_cores) == (2, 0.75, 0.25, 0.5)
    assert found.iowait_fraction == 0.25
    assert found.others_fraction == pytest.approx(2 / 3, abs=1e-6)
    assert found.disk_read_bytes_per_s == 100.0


def test_what_one_block_does_not_tell_is_taken_from_the_others() -> None:
    found = over(usage(job_cpu_s=None, network_sent_bytes=None), usage(job_cpu_s=1.0, network_sent_bytes=7))
    assert (found.job_cores, found.network_sent_bytes_per_s) == (1.0, 7.0)


def test_what_no_block_tells_stays_unknown() -> None:
    found = over(Usage(duration_s=1.0), Usage(duration_s=1.0))
    assert found == Load(cores=0)
    assert (found.busy_fraction, found.iowait_fraction, found.others_fraction) == (None, None, None)
    assert found.device_fraction is None


def test_the_same_share_in_every_block_is_that_share() -> None:
    found = over(*[usage(devices=(DeviceUsage("A", utilisation_fraction=0.95),))] * 6)
    assert found.device_fraction == 0.95


def test_memory_is_told_at_its_tightest() -> None:
    found = over(
        usage(job_memory_bytes=5, available_memory_bytes=20),
        usage(job_memory_bytes=9, available_memory_bytes=30),
    )
    assert (found.job_memory_bytes, found.available_memory_bytes) == (9, 20)


@pytest.mark.parametrize(
    ("fields", "busy", "others"),
    [
        ({"busy_core_s": (1.0, 1.0, 0.0, 0.0), "job_cpu_s": 2.0}, 0.5, 0.0),
        ({"busy_core_s": (1.0, 1.0, 0.0, 0.0), "job_cpu_s": 1.0}, 0.5, 0.5),
        ({"busy_core_s": (1.0, 1.0, 0.0, 0.0), "job_cpu_s": 1.0, "core_limit": 1.0}, 1.0, 0.5),
        ({"busy_core_s": (1.0, 1.02, 1.0, 1.0), "job_cpu_s": 4.2}, 1.0, 0.0),  # clocks that tick
    ],
    ids=["all its own", "half of it others'", "all of its quota", "more than there is"],
)
def test_busy_and_others(fields: dict[str, object], busy: float, others: float) -> None:
    found = over(usage(**fields))
    assert (found.busy_fraction, found.others_fraction) == (busy, others)


def test_readings_of_a_device_are_combined_field_by_field() -> None:
    first = DeviceUsage("A", 0.5, 10, 100, 200.0, 60, ("heat",))
    second = DeviceUsage("A", None, 30, 100, 100.0, 50, ("power cap", "heat"))
    (found,) = combined([(1.0, (first,)), (3.0, (second,)), (5.0, ())])
    assert found == DeviceUsage("A", 0.5, 30, 100, 125.0, 60, ("heat", "power cap"))


def test_devices_are_kept_apart() -> None:
    readings = [(1.0, (DeviceUsage("A", 0.2), DeviceUsage("B", 0.8)))] * 2
    assert combined(readings) == (DeviceUsage("A", 0.2), DeviceUsage("B", 0.8))
    assert combined([]) == ()

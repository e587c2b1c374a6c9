"""The machine, as far as the parent can see it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tfaudit import machine


@pytest.mark.parametrize(
    ("limit", "available"),
    [
        ("3000", 2000),  # of which 1000 are used
        ("900", 0),
        ("9000", 5000),  # more than the machine has
        ("max", 5000),
        (None, 5000),
    ],
)
def test_a_containers_limit_bounds_the_memory_that_is_free(
    limit: str | None, available: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if limit:
        (tmp_path / "max").write_text(f"{limit}\n")
    (tmp_path / "current").write_text("1000\n")
    monkeypatch.setattr(machine, "CGROUP_MEMORY", ((str(tmp_path / "max"), str(tmp_path / "current")),))
    memory = SimpleNamespace(available=5000)
    monkeypatch.setattr(machine.psutil, "virtual_memory", lambda: memory)
    assert machine.available_memory_bytes() == available


@pytest.mark.parametrize(
    ("names", "seen"),
    [
        (("null", "nvidiactl"), False),  # the driver without a card
        (("nvidia0",), True),
        (("kfd",), True),
        (("accel0",), True),
        (("vfio/vfio",), False),
        (("vfio/0",), True),
        ((), False),
    ],
)
def test_an_accelerator_shows_in_the_devices(
    names: tuple[str, ...], seen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine.platform, "system", lambda: "Linux")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert machine.may_have_accelerator(tmp_path) == seen

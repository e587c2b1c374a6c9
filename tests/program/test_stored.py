"""What lies in a folder of checkpoints and logs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tfaudit.errors import UsageError
from tfaudit.program import stored
from tfaudit.records import StoredKind, to_json

NOW_S = 1_800_000_000.0

NAMES = {
    "ckpt-12.index": "checkpoints and models",
    "ckpt-12.data-00000-of-00001": "checkpoints and models",
    "checkpoint": "checkpoints and models",
    "epoch3.weights.h5": "checkpoints and models",
    "model.keras": "checkpoints and models",
    "saved_model.pb": "checkpoints and models",
    "variables.data-00000-of-00001": "checkpoints and models",
    "events.out.tfevents.1700000000.host": "logs and traces",
    "host.xplane.pb": "logs and traces",
    "host.trace.json.gz": "logs and traces",
    "train.log.1": "logs and traces",
    "photos.tfrecord": "other",
    "notes.txt": "other",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_known_by_its_name(name: str) -> None:
    assert stored.kind_of(name) == NAMES[name]


def put(path: Path, size: int, age_days: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (NOW_S - age_days * 86_400, NOW_S - age_days * 86_400))


def test_sizes_and_ages_are_summed_by_kind(tmp_path: Path) -> None:
    """Old is what was not written for more than 30 days; data may be old without being waste."""
    put(tmp_path / "a" / "ckpt-1.index", 10, 31)
    put(tmp_path / "a" / "ckpt-2.index", 20, 29)
    put(tmp_path / "b" / "model.keras", 400, 100)
    put(tmp_path / "b" / "train.tfrecord", 5000, 100)
    found = stored.look(tmp_path, NOW_S)
    assert found.kinds == (
        StoredKind("checkpoints and models", 3, 430, 410, pytest.approx(29), pytest.approx(100)),
        StoredKind("other", 1, 5000, 5000, pytest.approx(100), pytest.approx(100)),
    )
    assert found.old_folders == {str(tmp_path / "b"): 400, str(tmp_path / "a"): 10}
    assert found.is_complete


def test_links_are_not_followed(tmp_path: Path) -> None:
    put(tmp_path / "elsewhere" / "model.keras", 100, 0)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "link.keras").symlink_to(tmp_path / "elsewhere" / "model.keras")
    (tmp_path / "runs" / "folder").symlink_to(tmp_path / "elsewhere")
    (kind,) = stored.look(tmp_path / "runs").kinds
    assert kind.count == 1
    assert kind.bytes < 1000


def test_an_empty_folder_holds_nothing(tmp_path: Path) -> None:
    assert stored.look(tmp_path).kinds == ()


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, what in {"file": "is no folder", "none": "does not exist"}.items():
        with pytest.raises(UsageError, match=f"{name} {what}: give --storage a folder"):
            stored.look(tmp_path / name)


def test_a_name_that_is_no_text_can_be_recorded(tmp_path: Path) -> None:
    put(Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff"), "model.keras"), 10, 100)
    found = stored.look(tmp_path, NOW_S)
    assert list(found.old_folders) == [f"{tmp_path}/d\ufffd"]
    assert to_json(found)

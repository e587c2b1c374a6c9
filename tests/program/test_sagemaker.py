"""The input channels of a SageMaker training job, read in a container made of files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tfaudit.program import sagemaker
from tfaudit.program.sagemaker import channels
from tfaudit.records import Channel

#: As the developer guide gives it.
FILE = {"TrainingInputMode": "File", "S3DistributionType": "FullyReplicated", "RecordWrapperType": "None"}


def container(root: Path, config: object = None, mounts: str = "", **files: int) -> Path:
    """A root file system with that input configuration, table of mounts and files of so many bytes."""
    if config is not None:
        path = root / sagemaker.CONFIG
        path.parent.mkdir(parents=True)
        path.write_text(config if isinstance(config, str) else json.dumps(config))
    (root / "proc").mkdir()
    (root / "proc/mounts").write_text(mounts.replace("ROOT", str(root)))
    for name, size in files.items():
        path = root / sagemaker.INPUT / "data" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(size))
    return root


def test_elsewhere_there_are_none(tmp_path: Path) -> None:
    assert channels({}, container(tmp_path)) is None
    assert channels({"TRAINING_JOB_NAME": "mine"}, tmp_path) is None


def test_a_job_may_have_none(tmp_path: Path) -> None:
    assert channels({"SM_CHANNELS": "[]"}, container(tmp_path)) == ()
    assert channels({"TRAINING_JOB_ARN": "arn:aws:sagemaker:…"}, tmp_path) == ()


def test_the_file_tells_of_them(tmp_path: Path) -> None:
    root = container(tmp_path, {"train": FILE, "test": {**FILE, "TrainingInputMode": "Pipe"}}, train__a=3)
    assert channels({}, root) == (Channel("train", "File", 3), Channel("test", "Pipe"))


def test_the_variable_tells_of_them(tmp_path: Path) -> None:
    variables = {"SM_INPUT_DATA_CONFIG": json.dumps({"train": {"TrainingInputMode": "FastFile"}})}
    assert channels(variables, container(tmp_path)) == (Channel("train", "FastFile"),)


def test_what_a_channel_in_file_mode_copied_is_counted(tmp_path: Path) -> None:
    root = container(tmp_path, {"train": FILE}, train__a=100, train__deep__b=20)
    assert channels({}, root) == (Channel("train", "File", 120),)


def test_a_channel_may_lie_elsewhere(tmp_path: Path) -> None:
    root = container(tmp_path, {"Train": FILE})
    (root / "data").mkdir()
    (root / "data/a").write_bytes(bytes(7))
    assert channels({"SM_CHANNEL_TRAIN": "/data"}, root) == (Channel("Train", "File", 7),)


def test_a_folder_that_is_not_there_was_not_counted(tmp_path: Path) -> None:
    assert channels({}, container(tmp_path, {"train": FILE})) == (Channel("train", "File", None),)


def test_too_many_files_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sagemaker, "MAX_FILES", 2)
    root = container(tmp_path, {"train": FILE}, train__a=1, train__b=1, train__c=1)
    assert channels({}, root) == (Channel("train", "File", None),)


MOUNTS = {
    "FastFile": "fastfile ROOT/opt/ml/input/data/train fuse.s3 ro,nosuid 0 0",
    "FastFile, by its being read-only": "none ROOT/opt/ml/input/data/train overlay rw,ro 0 0",
    "file system": "10.0.0.1:/ ROOT/opt/ml/input/data/train nfs4 rw 0 0",
    "file system, of FSx": "10.0.0.1@tcp:/a ROOT/opt/ml/input/data/train lustre ro 0 0",
    "File": "/dev/nvme1n1 ROOT/opt/ml/input/data/train ext4 rw,relatime 0 0",
    "File, with another mount": "x ROOT/opt/ml/input fuse ro 0 0\nbroken line",
}


@pytest.mark.parametrize("case", MOUNTS)
def test_what_is_called_file_mode_may_be_mounted(case: str, tmp_path: Path) -> None:
    """FastFile, EFS and FSx are all written down as "File"."""
    (channel,) = channels({}, container(tmp_path, {"train": FILE}, MOUNTS[case], train__a=1)) or ()
    assert channel.mode == case.partition(",")[0]
    assert (channel.bytes is None) == (channel.mode != "File")


@pytest.mark.parametrize("config", ["no JSON", "[]", '{"train": "File"}', '{"train": {}}', "{}"])
def test_a_configuration_that_tells_no_mode(config: str, tmp_path: Path) -> None:
    variables = {"SM_CHANNELS": '["train"]'}
    assert channels(variables, container(tmp_path, config)) == (Channel("train"),)

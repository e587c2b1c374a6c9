"""The documents on disk: what they survive, and the sentence for one that is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from checks.builders import block, failed, measured, plan

from tfaudit import records
from tfaudit.errors import UsageError
from tfaudit.records import Device, Failure, Plan, Status, VariantResult, read, to_json, write


def test_a_document_comes_back_as_it_was_written(tmp_path: Path) -> None:
    for document in (plan("baseline", steps=3), measured("xla"), failed("xla", "killed", "load")):
        write(tmp_path / "document.json", document)
        assert read(tmp_path / "document.json", type(document)) == document


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), float("-inf")])
def test_a_loss_that_is_no_finite_number_becomes_null(loss: float, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write(path, measured("baseline", blocks=(block(100.0, loss=loss),)))
    assert json.loads(path.read_text())["blocks"][0]["loss"] is None
    assert read(path, VariantResult).blocks[0].loss is None


def test_documents_are_indented_and_end_with_a_newline() -> None:
    text = to_json(Device(name="Ünit", kind="CPU")).decode()
    assert text == (
        '{\n "name": "Ünit",\n "kind": "CPU",\n "description": "",\n "compute_capability": null\n}\n'
    )


def test_statuses_are_written_as_words() -> None:
    assert json.loads(to_json(list(Status))) == [
        "pass",
        "warn",
        "fail",
        "not-applicable",
        "unknown",
        "manual",
        "error",
    ]


def test_records_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        plan("baseline").variants = ()  # type: ignore[misc]


def test_a_field_of_a_later_version_is_passed_over(tmp_path: Path) -> None:
    document = {**json.loads(to_json(measured("xla"))), "of_a_later_version": [1, 2]}
    (tmp_path / "result.json").write_text(json.dumps(document))
    assert read(tmp_path / "result.json", VariantResult) == measured("xla")


def test_writing_leaves_nothing_but_the_document(tmp_path: Path) -> None:
    write(tmp_path / "plan.json", plan("baseline"))
    write(tmp_path / "plan.json", plan("baseline", "xla"))
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
    assert read(tmp_path / "plan.json", Plan).variants == ("baseline", "xla")


def test_a_document_that_cannot_be_written_leaves_the_previous_one(tmp_path: Path) -> None:
    """Neither a half document nor a temporary file stays behind."""
    path = tmp_path / "plan.json"
    write(path, plan("baseline"))
    with pytest.raises(TypeError):
        write(path, {"no": object()})
    assert read(path, Plan) == plan("baseline")
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.json"]


def test_a_document_replaces_the_previous_one_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When writing is cut off before the last step, readers still see the previous document."""
    path = tmp_path / "plan.json"
    write(path, plan("baseline"))

    def cut_off(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", cut_off)
    with pytest.raises(KeyboardInterrupt):
        write(path, plan("baseline", "xla"))
    assert read(path, Plan) == plan("baseline")
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.json"]


BAD = {
    "nothing": b"",
    "half a document": b'{"id": "baseline", "sta',
    "no JSON": b"hello",
    "bytes that are no text": b"\xff\xfe\x00",
    "text that is no UTF-8": b'{"id": "\xff", "status": "measured"}',
    "a list": b"[]",
    "null": b"null",
    "a field is missing": b'{"id": "baseline"}',
    "a field of another type": b'{"id": "baseline", "status": 3}',
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_document_gives_one_sentence(case: str, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(BAD[case])
    with pytest.raises(UsageError) as raised:
        read(path, VariantResult)
    sentence = str(raised.value)
    assert sentence.startswith(f"{path} is not a VariantResult document: ")
    assert sentence.endswith(".") and "\n" not in sentence


def test_a_file_that_is_not_there_gives_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        read(tmp_path / "plan.json", Plan)
    assert str(raised.value) == f"{tmp_path}/plan.json does not exist: point at the folder of a finished run."


def test_a_file_that_cannot_be_read_gives_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        read(tmp_path, Plan)
    assert str(raised.value) == f"{tmp_path} cannot be read: Is a directory."


#: Phase, kind, and whether every other variant would fail in the same way.
BLAMED = [
    ("load", "raised", True),
    ("load", "no-fit", True),
    ("load", "timed-out", True),
    ("load", "killed", True),
    ("build", "no-data", True),
    ("load", "interrupted", False),
    ("start", "not-run", False),
    ("load", "unsupported", False),
    ("build", "not-applied", False),
    ("build", "raised", False),
    ("warm-up", "data-ended", False),
    ("measure", "killed", False),
    ("measure", "timed-out", False),
]


@pytest.mark.parametrize(("phase", "kind", "blamed"), BLAMED)
def test_which_failures_are_the_targets_own(phase: str, kind: str, blamed: bool) -> None:
    assert Failure(phase=phase, kind=kind, message="").blames_target is blamed


def test_every_record_can_be_written_with_its_defaults() -> None:
    """A field whose type cannot be encoded would only be noticed at the end of a run."""
    kinds = [
        kind for kind in vars(records).values() if isinstance(kind, type) and issubclass(kind, records.Record)
    ]
    assert len(kinds) > 20
    for kind in kinds:
        msgspec.json.schema(kind)

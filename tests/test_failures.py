"""What is told of a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfaudit import failures


def error_of(code: str, filename: str) -> Exception:
    with pytest.raises(ZeroDivisionError) as caught:
        exec(compile(code, filename, "exec"), {})
    return caught.value


@pytest.mark.parametrize(
    ("filename", "heading", "place"),
    [
        ("/project/train.py", "Traceback (your frames only):", "/project/train.py"),
        (failures.__file__, "Traceback (its last frame, none being yours):", failures.__file__),
    ],
)
def test_a_traceback_says_whose_frames_it_shows(
    filename: str, heading: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "_INSTALLED", (str(Path(failures.__file__).parent), __file__))
    text = failures.user_traceback(error_of("1 / 0", filename))
    assert text.splitlines()[0] == heading
    assert f'File "{place}", line 1' in text

"""What lies in a folder of checkpoints and logs: how much, and how old. Runs in the parent; opens no file."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from pathlib import Path

from ..errors import UsageError
from ..records import Stored, StoredKind

#: Files not written for longer are old.
OLD_DAYS = 30

#: What a file's name says of it, the first that matches; what matches none is other.
KINDS = {
    "logs and traces": re.compile(
        r"tfevents|xplane\.pb$|trace\.json(\.gz)?$|\.(log|out|err)(\.\d+)?(\.gz)?$", re.IGNORECASE
    ),
    "checkpoints and models": re.compile(
        r"checkpoint|ckpt|\.(keras|h5|hdf5|index|pb|tflite|onnx|safetensors)$|\.data-\d+-of-\d+$",
        re.IGNORECASE,
    ),
}
OTHER = "other"

#: Folders named where most of what is old lies.
MOST_FOLDERS = 5

#: A folder on a network may hold more than anyone waits for.
LONGEST_S = 20.0

_DAY_S = 86_400.0


def look(path: Path, now_s: float | None = None) -> Stored:
    """Size and age of the files in a folder, links not followed.

    Raises `UsageError` when there is no such folder.
    """
    if not path.is_dir():
        what = "is no folder" if path.exists() else "does not exist"
        raise UsageError(f"{path} {what}: give --storage a folder of checkpoints or logs.")
    now_s = time.time() if now_s is None else now_s
    until, complete = time.monotonic() + LONGEST_S, True
    counts: dict[str, list[tuple[int, float]]] = {kind: [] for kind in (*KINDS, OTHER)}
    old = Counter[str]()
    for folder, folders, files in os.walk(path):
        folders.sort()
        for name in files:
            try:
                state = Path(folder, name).lstat()
            except OSError:
                continue  # gone meanwhile
            age_days = max(0.0, (now_s - state.st_mtime) / _DAY_S)
            kind = kind_of(name)
            counts[kind].append((state.st_size, age_days))
            if kind != OTHER and age_days > OLD_DAYS:
                old[shown(folder)] += state.st_size
        if time.monotonic() > until:
            complete = False
            break
    return Stored(
        path=shown(str(path)),
        kinds=tuple(_summed(kind, found) for kind, found in counts.items() if found),
        old_folders=dict(old.most_common(MOST_FOLDERS)),
        is_complete=complete,
    )


def shown(path: str) -> str:
    """A path that can be recorded, what is no UTF-8 in it replaced."""
    return path.encode(errors="surrogateescape").decode(errors="replace")


def kind_of(name: str) -> str:
    """What a file is, by its name."""
    return next((kind for kind, pattern in KINDS.items() if pattern.search(name)), OTHER)


def _summed(kind: str, found: list[tuple[int, float]]) -> StoredKind:
    return StoredKind(
        kind=kind,
        count=len(found),
        bytes=sum(size for size, _ in found),
        old_bytes=sum(size for size, age in found if age > OLD_DAYS),
        newest_days=min(age for _, age in found),
        oldest_days=max(age for _, age in found),
    )

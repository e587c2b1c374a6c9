"""The input channels of a SageMaker training job, told by its environment and the files in its container.

https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-training-algo-running-container.html
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..records import Channel

INPUT = "opt/ml/input"
CONFIG = f"{INPUT}/config/inputdataconfig.json"

#: Set in every training job, by SageMaker itself or by its training toolkit; by nothing else.
SIGNS = ("TRAINING_JOB_ARN", "SM_TRAINING_ENV", "SM_INPUT_DATA_CONFIG", "SM_CHANNELS")

#: A bound on the files that are counted: with more of them, many small ones are the trouble (3.1).
MAX_FILES = 10_000

NETWORK_FILE_SYSTEMS = ("lustre", "nfs")


def channels(variables: Mapping[str, str], root: Path = Path("/")) -> tuple[Channel, ...] | None:
    """The channels of this training job; None outside of SageMaker."""
    config = root / CONFIG
    if not any(variables.get(sign) for sign in SIGNS) and not config.is_file():
        return None
    described = _parsed(variables.get("SM_INPUT_DATA_CONFIG")) or _parsed(_read(config))
    described = described if isinstance(described, dict) else {}
    listed = _parsed(variables.get("SM_CHANNELS"))
    names = [*described, *(name for name in (listed if isinstance(listed, list) else ()))]
    mounts = _mounts(_read(root / "proc/mounts"))
    return tuple(
        _channel(str(name), described.get(name), _folder(str(name), variables, root), mounts)
        for name in dict.fromkeys(names)
    )


def _channel(name: str, described: Any, folder: Path, mounts: dict[str, tuple[str, str]]) -> Channel:
    mode = str(described.get("TrainingInputMode") or "") if isinstance(described, dict) else ""
    if mode != "File":
        return Channel(name=name, mode=mode)
    # "File" is written there for FastFile, EFS and FSx, too: these are mounted, the first one read-only.
    kind, options = mounts.get(str(folder), ("", ""))
    if kind.startswith(NETWORK_FILE_SYSTEMS):
        return Channel(name=name, mode="file system")
    if kind.startswith("fuse") or "ro" in options.split(","):
        return Channel(name=name, mode="FastFile")
    return Channel(name=name, mode="File", bytes=_size(folder))


def _folder(name: str, variables: Mapping[str, str], root: Path) -> Path:
    """Where a channel lies; its variable is named in capitals, whatever the channel is."""
    said = variables.get(f"SM_CHANNEL_{name.upper()}")
    return root / (said.lstrip("/") if said else f"{INPUT}/data/{name}")


def _mounts(table: str) -> dict[str, tuple[str, str]]:
    """The kind and the options of each mounted file system, by the folder that it is mounted at."""
    rows = [line.split(" ") for line in table.splitlines()]
    return {row[1].replace("\\040", " "): (row[2], row[3]) for row in rows if len(row) >= 4}


def _size(folder: Path) -> int | None:
    """The bytes of all files in a folder; None when there is none, or too many files to count."""
    if not folder.is_dir():
        return None
    total = files = 0
    for place, _, names in os.walk(folder):
        files += len(names)
        if files > MAX_FILES:
            return None
        total += sum(_bytes(Path(place, name)) for name in names)
    return total


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except ValueError:
        return None

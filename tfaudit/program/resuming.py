"""What lets a run that was interrupted go on where it stopped, told from callbacks and source."""

from __future__ import annotations

from ..records import Program, Source
from .callbacks import is_keras
from .names import FRAMEWORKS, is_of

#: What saves a run's state and restores it by itself.
RESUMERS = frozenset({"BackupAndRestore", "PreemptionCheckpointHandler"})

#: What saves, and needs something else that restores.
SAVERS = frozenset({"Checkpoint", "CheckpointManager", "ModelCheckpoint", "OrbaxCheckpoint"})
RESTORING_METHODS = frozenset({"load_weights", "restore", "restore_latest", "restore_or_initialize"})
RESTORING_FUNCTIONS = frozenset({"latest_checkpoint", "load_model"})

CHECKPOINTERS = (*FRAMEWORKS, "orbax")


def resumed_by(program: Program, source: Source) -> str:
    """What saves and restores by itself; empty when nothing does."""
    return _first(program, source, RESUMERS)


def saved_by(program: Program, source: Source) -> str:
    """What saves without restoring; empty when nothing does."""
    return _first(program, source, SAVERS)


def _first(program: Program, source: Source, names: frozenset[str]) -> str:
    """The first of fit's callbacks, or of what the source uses, that has one of these names."""
    callbacks = (each.name for each in program.callbacks if is_keras(each, *names))
    uses = (f"{full} ({place})" for full, place in source.uses.items() if is_of(full, names, CHECKPOINTERS))
    return next(callbacks, next(uses, ""))


def restored_by(program: Program, source: Source) -> str:
    """What restores before training begins; empty when nothing does."""
    if program.fit_arguments.get("initial_epoch", "0") != "0":
        return "fit's initial_epoch"
    methods = {
        name: place
        for name, place in source.calls.items()
        if "." in name and name.rpartition(".")[2] in RESTORING_METHODS
    }
    functions = {name: place for name, place in source.uses.items() if is_of(name, RESTORING_FUNCTIONS)}
    for name, place in (methods | functions).items():
        if not _is_after_fit(place, program):
            return f"{name} ({place})"
    return ""


def _is_after_fit(place: str, program: Program) -> bool:
    """Whether a place follows the call of ``fit`` in its file: there, weights are loaded for a test."""
    file, _, line = place.rpartition(":")
    path, _, fit_line = (program.location or "").rpartition(":")
    same = bool(file) and path.replace("\\", "/").rpartition("/")[2] == file
    return same and line.isdecimal() and fit_line.isdecimal() and int(line) > int(fit_line)

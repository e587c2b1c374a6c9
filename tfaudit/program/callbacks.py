"""Which of the user's callbacks may take part in an audit."""

from __future__ import annotations

import re
import types
from collections.abc import Iterable
from typing import Any

from ..records import CallbackFact

#: Keras's own callbacks that write files or talk to a service.
WRITERS = frozenset(
    {
        "BackupAndRestore",
        "CSVLogger",
        "ModelCheckpoint",
        "OrbaxCheckpoint",
        "RemoteMonitor",
        "TensorBoard",
    }
)

#: Settings of a callback that a check reads.
READ_OPTIONS = ("monitor", "update_freq")

#: Packages whose callbacks report to a tracking service or write run folders.
TRACKERS = frozenset(
    {
        "aim",
        "azureml",
        "clearml",
        "codecarbon",
        "comet_ml",
        "dagshub",
        "dvclive",
        "guild",
        "mlflow",
        "neptune",
        "polyaxon",
        "sacred",
        "sagemaker",
        "swanlab",
        "tensorboardX",
        "trackio",
        "wandb",
    }
)

#: Packages whose callbacks were looked at: what they define writes nothing unless named above.
OWN_PACKAGES = frozenset({"keras", "tf_keras", "tfaudit"})

#: Names that a callback's own code would mention if it wrote a file or sent something.
WRITING_CALLS = frozenset(
    {
        "copyfile",
        "copytree",
        "create_file_writer",
        "dump",
        "export",
        "imsave",
        "makedirs",
        "mkdir",
        "open",
        "post",
        "save",
        "save_model",
        "save_weights",
        "savefig",
        "savetxt",
        "savez",
        "to_csv",
        "to_json",
        "to_parquet",
        "to_pickle",
        "urlopen",
        "write_bytes",
        "write_text",
    }
)


def split(callbacks: Any) -> tuple[list[Any], list[CallbackFact]]:
    """Separate the callbacks to keep from those that write; return the kept ones and facts on all."""
    kept: list[Any] = []
    facts: list[CallbackFact] = []
    for callback in _listed(callbacks):
        reason = why_left_out(callback)
        if not reason:
            kept.append(callback)
        kind = type(callback)
        facts.append(
            CallbackFact(
                name=kind.__name__,
                module=kind.__module__,
                bases=tuple(base.__name__ for base in kind.__mro__[1:-1]),
                kept=not reason,
                reason=reason,
                options=_options(callback),
            )
        )
    return kept, facts


def _options(callback: Any) -> dict[str, str]:
    own = getattr(callback, "__dict__", {})
    options = {name: str(own[name]) for name in READ_OPTIONS if name in own}
    if "_start_batch" in own:  # where TensorBoard keeps its profile_batch
        options["profile_batch"] = f"{own['_start_batch']}, {own.get('_stop_batch')}"
    return options


def is_keras(callback: CallbackFact, *names: str) -> bool:
    """Whether a callback is one of Keras's own of these names, or made from it."""
    is_own = callback.module.partition(".")[0] not in ("keras", "tf_keras")
    return bool({*names} & {*callback.bases, *(() if is_own else (callback.name,))})


def _listed(callbacks: Any) -> Iterable[Any]:
    if callbacks is None:
        return []
    callbacks = getattr(callbacks, "callbacks", callbacks)  # a CallbackList
    return callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]


def why_left_out(callback: Any) -> str:
    """Why an audit must not run this callback; empty when it may."""
    kinds = type(callback).__mro__[:-1]
    for kind in kinds:
        package = kind.__module__.partition(".")[0]
        if package in TRACKERS:
            return f"reports to {package}"
        if package in ("keras", "tf_keras") and kind.__name__ in WRITERS:
            return "writes files" if kind.__name__ != "RemoteMonitor" else "talks to a server"
    own = [kind for kind in kinds if kind.__module__.partition(".")[0] not in OWN_PACKAGES]
    functions = [member for kind in own for member in vars(kind).values()]
    functions += list(vars(callback).values())  # LambdaCallback keeps its functions there
    for function in map(_unwrapped, functions):
        if isinstance(function, types.FunctionType):
            package = function.__module__ or ""
            if package.partition(".")[0] in OWN_PACKAGES:
                continue
            if writing := sorted(_names(function.__code__) & WRITING_CALLS):
                return f"may write or send something (its code uses {writing[0]})"
            if reads := _validation_key(function.__code__):
                return f"reads {reads}, and an audit runs no validation"
    return ""


def _unwrapped(member: Any) -> Any:
    """The function behind a method, a static or class method, a property or a partial."""
    for attribute in ("__func__", "fget", "func"):
        member = getattr(member, attribute, None) or member
    return member


def _validation_key(code: types.CodeType) -> str:
    """The first string such as ``val_loss`` in a function; empty when it has none."""
    for constant in code.co_consts:
        if isinstance(constant, str) and re.fullmatch(r"val_\w+", constant):
            return constant
        if isinstance(constant, types.CodeType) and (found := _validation_key(constant)):
            return found
    return ""


def _names(code: types.CodeType) -> set[str]:
    """Names that a function mentions, nested functions included."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names

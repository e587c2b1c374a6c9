"""What went wrong in a child, in one sentence, with the user's own part of the traceback."""

from __future__ import annotations

import linecache
import re
import sys
import sysconfig
import traceback
from pathlib import Path

from .feeding import NotTransformable
from .recorders import NoData
from .session import Failed
from .target import TargetError


class NotApplied(Exception):
    """The variant's change did not take effect; the message says why, in a sentence."""


def no_fit(name: str) -> Failed:
    """A script that ran to its end."""
    return Failed(
        kind="no-fit",
        message=f"{name} ended without calling Model.fit: call fit in it, or name a factory that"
        f" returns tfaudit.Job(model, dataset, train_step) as {name}:factory.",
    )


def fit_in_child_process() -> Failed:
    """A script that trains in a process which it started itself."""
    return Failed(
        kind="no-fit",
        message="The program calls Model.fit in a process that it starts itself: point tfaudit at"
        " what that process runs.",
    )


def while_loading(error: BaseException, name: str) -> Failed:
    """An exception that left the user's code before its job was known."""
    detail = user_traceback(error)
    if isinstance(error, TargetError):
        return Failed(kind=error.kind, message=str(error))
    if isinstance(error, SystemExit):
        code = "" if error.code is None else repr(error.code)
        return Failed(
            kind="exited",
            message=f"{name} called sys.exit({code}) before Model.fit: check its arguments, which"
            " follow -- on tfaudit's command line.",
            detail=detail,
        )
    if isinstance(error, EOFError):
        return Failed(
            kind="raised",
            message=f"{name} asked for input, which an audit cannot answer: give it as an argument after --.",
            detail=detail,
        )
    if isinstance(error, ModuleNotFoundError):
        return Failed(
            kind="import",
            message=f"{name} imports {error.name}, which is not installed where tfaudit runs"
            f"{_own_package(str(error.name))}.",
            detail=detail,
        )
    kind = "import" if isinstance(error, (ImportError, SyntaxError)) else "raised"
    return Failed(kind=kind, message=f"{name} raised {describe(error)}", detail=detail)


def while_running(error: BaseException) -> Failed:
    """An exception while the job was built, warmed up or measured."""
    if isinstance(error, NotApplied):
        return Failed(kind="not-applied", message=str(error))
    if isinstance(error, NotTransformable):
        return Failed(kind="unsupported", message=str(error))
    if isinstance(error, NoData):
        return Failed(kind=error.kind, message=str(error))
    kind, subject, advice = "raised", "Training raised", ""
    names = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, MemoryError) or "ResourceExhaustedError" in names:
        kind, advice = "memory", " Memory ran out: a smaller batch may fit."
    if "tf2xla conversion failed" in str(error) or " on XLA_" in str(error):
        kind, subject = "unsupported", "XLA refuses this model:"
    return Failed(kind=kind, message=f"{subject} {describe(error)}{advice}", detail=user_traceback(error))


def _own_package(module: str) -> str:
    """A hint for a package of the user's that ``python file.py`` does not find either."""
    top = module.partition(".")[0]
    if not (Path.cwd() / top).is_dir():
        return ""
    return f"; it is a folder here, so name the target as a module of it: {top}.…"


#: An error's own words are cut to this many characters in a sentence; the detail has them all.
LONGEST_MESSAGE = 240


#: Lines that TensorFlow puts before the one that says what happened.
_PREAMBLE = re.compile(r"Graph execution error:|Detected at node |<stack traces|File \"|\s*$")


def describe(error: BaseException) -> str:
    """``ValueError: the line of its message that says most.``"""
    lines = [line.strip() for line in str(error).splitlines()]
    words = next((line for line in lines if not _PREAMBLE.match(line)), "")
    words = re.sub(r"\{\{.*?\}\}\s*|\s*\[Op:.*$", "", words)  # TensorFlow's names of its own nodes
    if len(words) > LONGEST_MESSAGE:
        words = words[: LONGEST_MESSAGE - 1] + "…"
    text = f"{type(error).__name__}: {words}" if words else type(error).__name__
    text = text.encode(errors="replace").decode()  # a lone surrogate would not reach the runner
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def user_traceback(error: BaseException) -> str:
    """The traceback without the frames of tfaudit, the standard library and installed packages.

    When none of the user's frames is left the last frame stays, so that the place is known, and it is said.
    """
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if is_users(frame.filename)]
    shown = own or frames[-1:]
    linecache.checkcache()
    said = "".join(traceback.format_exception_only(type(error), error)).splitlines(keepends=True)
    # TensorFlow's own messages repeat the whole stack in which an op was made.
    said = [line for line in said if not (made := _FRAME.match(line)) or is_users(made[1])]
    which = "your frames only" if own else "its last frame, none being yours"
    text = "".join([f"Traceback ({which}):\n", *traceback.format_list(shown), *said])
    return text.encode(errors="replace").decode()


_FRAME = re.compile(r'\s*File "([^"]+)", line \d+')


def is_users(filename: str) -> bool:
    """Whether a frame's file belongs to the user rather than to Python, a package or tfaudit."""
    if filename.startswith("<"):
        return False
    path = str(Path(filename).absolute())
    return not any(path.startswith(place) for place in _INSTALLED)


_INSTALLED = tuple(
    {
        str(Path(place).absolute()) + "/"
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
        if (place := sysconfig.get_path(name))
    }
    | {str(Path(__file__).parent) + "/"}
    | {str(Path(place).absolute()) + "/" for place in sys.path if place.endswith("site-packages")}
)

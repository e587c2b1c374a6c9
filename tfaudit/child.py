"""From a fresh process to a worker: a session of its own, its output in files, no input."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

#: The runner sends this before it kills a child that takes too long, to learn where it was.
STACK_SIGNAL = signal.SIGUSR2

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def run_child(folder: Path, descriptor: int) -> NoReturn:
    """Carry out the request in ``folder``, telling the socket ``descriptor``."""
    os.setsid()
    die_with_parent()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    redirect(folder)
    from . import worker

    worker.main(folder, descriptor)


def redirect(folder: Path) -> None:
    """Send standard output and error to the variant's logs; standard input is empty."""
    writing = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for number, name, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, str(folder / "stdout.log"), writing),
        (2, str(folder / "stderr.log"), writing),
    ):
        opened = os.open(name, flags, 0o644)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", buffering=1, errors="backslashreplace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    faulthandler.enable(file=2)
    faulthandler.register(STACK_SIGNAL, file=2)


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Be sent that signal when the parent process ends, however it ends; Linux only."""
    prctl(PR_SET_PDEATHSIG, number)


def prctl(option: int, value: int) -> None:
    """Linux's call of that name; nothing elsewhere."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def main() -> NoReturn:
    """How a child starts where there is no fork server: with the folder and the socket as arguments."""
    run_child(Path(sys.argv[1]), int(sys.argv[2]))

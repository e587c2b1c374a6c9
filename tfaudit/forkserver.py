"""A process that imports TensorFlow once and forks a child for each request.

Importing does not initialise devices, so a forked child is as good as a fresh interpreter, without
the seconds that the import takes. It serves requests from the socket whose
number it is given: each message is the path of a variant's folder, with the child's end of its channel
beside it. It answers ``started PID`` and, once that child is gone, ``exited PID STATUS``. Where it outlives
the runner, it removes the scratch folder, its second argument.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import select
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

import psutil

from .child import PR_SET_CHILD_SUBREAPER, die_with_parent, prctl, run_child

#: Imported before the first fork; tf_keras only where it is installed.
PRELOADED = ("tensorflow", "keras", "tf_keras")

_POLL_S = 0.02


def main() -> NoReturn:
    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGTERM, end_all)
    die_with_parent(signal.SIGTERM)
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # what a child leaves behind becomes ours to end
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    preload()
    with contextlib.suppress(OSError):  # a runner that is gone by now will be noticed next
        control.send(b"ready")
    serve(control)


def preload() -> None:
    """Import the packages that every child needs."""
    for package in PRELOADED:
        if importlib.util.find_spec(package) is not None:
            importlib.import_module(package)
    importlib.import_module("tfaudit.worker")


def end_all(*_: object) -> NoReturn:
    """Kill all that descends from this process, frozen or in a session of its own, tidy up, and end."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            process.kill()
    shutil.rmtree(sys.argv[2], ignore_errors=True)
    os._exit(0)


def serve(control: socket.socket) -> NoReturn:
    """Fork for each request until the runner is gone."""
    while True:
        readable, _, _ = select.select([control], [], [], _POLL_S)
        if readable:
            message, descriptors, _, _ = socket.recv_fds(control, 4096, 1)
            if not message:
                end_all()
            child = os.fork()
            if child == 0:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                control.close()
                run_child(Path(os.fsdecode(message)), descriptors[0])
            os.close(descriptors[0])
            control.send(f"started {child}".encode())
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                control.send(f"exited {ended[0]} {ended[1]}".encode())

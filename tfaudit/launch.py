"""Starting, watching and ending child processes, in the parent."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Protocol

import psutil

from .child import STACK_SIGNAL
from .errors import MeasurementError
from .session import Channel, pair, runner_end

GONE = (
    "The process that imports TensorFlow ended unexpectedly: see launcher.log in the run folder, or try"
    " --spawn."
)

#: How long the fork server may take to import TensorFlow, from a cold disk at worst.
SERVER_START_S = 180.0


class Child:
    """A running child and the runner's end of the conversation with it."""

    def __init__(self, launcher: Launcher, pid: int, channel: Channel) -> None:
        self.pid = pid
        self.channel = channel
        self._launcher = launcher

    def exit_code(self) -> int | None:
        """Negative for a signal, as in `subprocess`; None while it runs."""
        return self._launcher.exit_code(self.pid)

    @property
    def is_lost(self) -> bool:
        """Whether it ended for no reason of its own: what started it is gone."""
        return self._launcher.is_gone

    def signal(self, number: int) -> None:
        """Send a signal to the child and everything in its process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def memory_bytes(self) -> int:
        """Resident memory of the child and what it started; pages that it shares with others count, too."""
        total = 0
        for pid in [self.pid, *self._descendants()]:
            with contextlib.suppress(psutil.Error):
                total += psutil.Process(pid).memory_info().rss
        return total

    def show_stack(self, wait_s: float = 0.3) -> None:
        """Have the child write its Python stack to its stderr log."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, STACK_SIGNAL)
            time.sleep(wait_s)

    def end(self, wait_s: float = 10.0) -> None:
        """Kill the child, if it still runs, and all that it started; return once they are gone."""
        for process in [*self._descendants(), self.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        until = time.monotonic() + wait_s
        while self.exit_code() is None and time.monotonic() < until:
            time.sleep(0.01)
        self._launcher.end_orphans()
        self.channel.close()

    def _descendants(self) -> list[int]:
        with contextlib.suppress(psutil.Error):
            return [child.pid for child in psutil.Process(self.pid).children(recursive=True)]
        return []


class Launcher(Protocol):
    """A way to start children. Once it ``is_gone`` it starts no more, and its children have ended.

    ``scratch`` is a folder for what children write meanwhile, which goes with the launcher.
    """

    is_gone: bool
    scratch: Path

    def start(self, folder: Path) -> Child:
        """Start a child on the request in ``folder``."""

    def exit_code(self, pid: int) -> int | None:
        """How that child ended; None while it runs."""

    def end_orphans(self) -> None:
        """End what finished children left running, where they can be told."""

    def close(self) -> None:
        """Give up; running children are killed."""


class ForkServer:
    """Starts children by forking a process that has TensorFlow imported already."""

    def __init__(self, log: Path) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.is_gone = False
        self.scratch = new_scratch()
        self._exited: dict[int, int] = {}
        self._alive: set[int] = set()
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*interpreter("forkserver"), str(theirs.fileno()), str(self.scratch)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=child_environment(),
            )
        theirs.close()
        self._ready = False

    def start(self, folder: Path) -> Child:
        """Raises `MeasurementError` when the server cannot start or has gone."""
        if not self._ready:
            self._expect(b"ready", SERVER_START_S)
            self._ready = True
        mine, theirs = pair()
        try:
            with theirs:
                socket.send_fds(self._control, [os.fsencode(folder)], [theirs.fileno()])
        except OSError:
            raise MeasurementError(GONE) from None
        pid = int(self._expect(b"started", 30.0).split()[1])
        self._alive.add(pid)
        return Child(self, pid, runner_end(mine.detach()))

    def _expect(self, word: bytes, timeout_s: float) -> bytes:
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            message = self._receive(0.1)
            if message and message.startswith(word):
                return message
        raise MeasurementError("The process that imports TensorFlow did not start in time.")

    def _receive(self, timeout_s: float) -> bytes | None:
        """The next message; None when there is none yet. Exits are noted on the way."""
        self._control.settimeout(timeout_s)
        try:
            message = self._control.recv(4096)
        except (TimeoutError, BlockingIOError):
            return None
        except ConnectionError:
            message = b""
        if not message:
            self.is_gone = True
            raise MeasurementError(GONE)
        if message.startswith(b"exited"):
            _, pid, status = message.split()
            self._exited[int(pid)] = os.waitstatus_to_exitcode(int(status))
            self._alive.discard(int(pid))
        return message

    def exit_code(self, pid: int) -> int | None:
        try:
            while self._receive(0.0):
                pass
        except MeasurementError:
            # Without its server no child lives on (it is told to die with it).
            return self._exited.get(pid, -signal.SIGKILL)
        return self._exited.get(pid)

    def end_orphans(self) -> None:
        # What a finished child left behind has become the server's own. So has what a living one put in the
        # background, which is still of that one's session; with a session of its own it cannot be told.
        for orphan in self._below(recursive=False):
            with contextlib.suppress(psutil.Error, ProcessLookupError):  # it may end meanwhile
                if orphan.pid in self._alive or os.getsid(orphan.pid) in self._alive:
                    continue
                for process in [*orphan.children(recursive=True), orphan]:
                    process.kill()

    def close(self) -> None:
        for process in self._below():
            with contextlib.suppress(psutil.Error):
                process.kill()
        self._process.kill()
        self._process.wait()
        self._control.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _below(self, recursive: bool = True) -> list[psutil.Process]:
        """Processes that the server started or adopted, and with ``recursive`` all below them."""
        try:
            found: list[psutil.Process] = psutil.Process(self._process.pid).children(recursive=recursive)
        except psutil.Error:
            return []
        return found


class Spawner:
    """Starts each child as a fresh interpreter; slower, and safe where forking is not."""

    is_gone = False

    def __init__(self) -> None:
        self.scratch = new_scratch()
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, folder: Path) -> Child:
        mine, theirs = pair()
        with theirs:
            process = subprocess.Popen(
                [*interpreter("child"), str(folder), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=child_environment(),
            )
        self._processes[process.pid] = process
        return Child(self, process.pid, runner_end(mine.detach()))

    def exit_code(self, pid: int) -> int | None:
        return self._processes[pid].poll()

    def end_orphans(self) -> None:
        """Only a child's own process group can be told here, and `Child.end` has ended that."""

    def close(self) -> None:
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        shutil.rmtree(self.scratch, ignore_errors=True)


def new_scratch() -> Path:
    return Path(tempfile.mkdtemp(prefix="tfaudit-"))


def child_environment() -> dict[str, str]:
    """The environment of a child's interpreter, set before TensorFlow is imported.

    Hash seeds are fixed, so that sets have one order in all variants; TensorFlow logs at a level
    that lets its placement log through (the output goes to files).
    """
    return {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
        "TF_CPP_MIN_LOG_LEVEL": "0",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    }


def interpreter(module: str) -> list[str]:
    """A command that runs ``tfaudit.<module>.main`` from where this tfaudit was imported.

    ``-m`` would put the working directory first on ``sys.path``, where a file of the user's may be
    named like one of TensorFlow's own imports.
    """
    code = (
        "import sys; sys.path[0] = sys.argv.pop(1);"
        f" from tfaudit.{module} import main; sys.path.pop(0); main()"
    )
    return [sys.executable, "-c", code, str(Path(__file__).resolve().parent.parent)]


def launcher(log: Path, spawn: bool = False) -> Launcher:
    """The fork server on Linux, fresh interpreters elsewhere or when asked.

    Forking after TensorFlow's import is unsafe on macOS, whose frameworks start threads, and
    impossible on Windows.
    """
    return Spawner() if spawn or sys.platform != "linux" else ForkServer(log)

"""The conversation between the runner and one child, over a socket, one message at a time.

The child tells what it found as soon as it knows it, so that whatever becomes of the child later,
nothing measured is lost. The runner answers each `Ready` with `Go` (measure one block) or
`Finish`; between the two the child may be frozen.
"""

from __future__ import annotations

import socket
import struct
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from .records import (
    Block,
    Compression,
    Placement,
    Program,
    Record,
    Resolved,
    Tuned,
    VariantEnvironment,
    WarmUp,
    Weighed,
)


class PhaseStarted(Record, frozen=True, tag="phase"):
    """The child has entered a phase; the one before has ended."""

    name: str


class Found(Record, frozen=True, tag="found"):
    """Facts on the job and the machine. None means nothing new on that part."""

    program: Program | None = None
    environment: VariantEnvironment | None = None
    resolved: Resolved | None = None
    placement: Placement | None = None
    compression: Compression | None = None
    weighed: Weighed | None = None
    tuned: tuple[Tuned, ...] | None = None
    train_ops: dict[str, int] | None = None
    traces: int | None = None
    peak_device_bytes: int | None = None
    peak_host_bytes: int | None = None
    notes: tuple[str, ...] | None = None
    cache_filled: bool | None = None


class Warm(Record, frozen=True, tag="warm"):
    """Warm-up is over."""

    warm_up: WarmUp


class Measured(Record, frozen=True, tag="block"):
    """One finished block."""

    block: Block


class Ready(Record, frozen=True, tag="ready"):
    """The child waits to be told what to do."""


class Failed(Record, frozen=True, tag="failed"):
    """The child ends badly and knows why; the fields are those of `Failure`."""

    kind: str
    message: str
    detail: str = ""


class Done(Record, frozen=True, tag="done"):
    """The child has told everything."""


class Go(Record, frozen=True, tag="go"):
    """Measure a block of at least that many steps and seconds, but end it after the longest.

    Steps within the first ``settle_s`` seconds come on top, and count as those that follow.
    """

    settle_s: float = 0.0
    min_steps: int = 1
    min_duration_s: float = 0.0
    max_duration_s: float = 60.0


class Finish(Record, frozen=True, tag="finish"):
    """Measure no more."""


FromChild = PhaseStarted | Found | Warm | Measured | Ready | Failed | Done
FromRunner = Go | Finish


class Channel:
    """One end of the conversation. Raises `EOFError` or `OSError` when the other end is gone."""

    def __init__(self, connection: Any, receives: Any) -> None:
        self.connection = connection
        self._decoder = msgspec.json.Decoder(receives)

    def send(self, message: Record) -> None:
        self.connection.send_bytes(msgspec.json.encode(message))

    def receive(self) -> Any:
        return self._decoder.decode(self.connection.recv_bytes())

    def poll(self, timeout_s: float) -> bool:
        return bool(self.connection.poll(timeout_s))

    def close(self) -> None:
        self.connection.close()


def runner_end(file_descriptor: int) -> Channel:
    """The runner's end, over a connected socket's file descriptor."""
    return Channel(Connection(file_descriptor), FromChild)


def child_end(file_descriptor: int) -> Channel:
    """The child's end, over a connected socket's file descriptor."""
    return Channel(Connection(file_descriptor), FromRunner)


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets: the runner's and the child's."""
    mine, theirs = socket.socketpair()
    # A child that writes something else into the socket must not make the runner wait for the rest of it.
    mine.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", LONGEST_MESSAGE_S, 0))
    return mine, theirs


LONGEST_MESSAGE_S = 5

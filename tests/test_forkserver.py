"""How the fork server ends."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

SERVE = """
import socket, sys
from tfaudit import forkserver
forkserver.serve(socket.socket(fileno=int(sys.argv[1])))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux only")
def test_a_server_that_outlives_the_runner_removes_what_children_wrote(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    (scratch / "baseline").mkdir(parents=True)
    (scratch / "baseline" / "cache.data").write_bytes(b"0")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-c", SERVE, str(theirs.fileno()), str(scratch)]
    with subprocess.Popen(command, pass_fds=[theirs.fileno()]) as server:
        theirs.close()
        ours.close()
        assert server.wait(timeout=30) == 0
    assert scratch.exists() is False

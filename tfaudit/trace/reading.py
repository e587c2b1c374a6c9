"""Find the files of a trace and read each; every way to fail is one sentence."""

from __future__ import annotations

import contextlib
import re
import zlib
from pathlib import Path

from ..errors import TraceError
from .tables import Trace
from .wire import PADDING, Buffer, Malformed

XPLANE, CHROME = ".xplane.pb", (".trace.json.gz", ".trace.json")
# Where TensorBoard keeps sessions: in the folder given, or below it (logs/train/plugins/profile).
SESSIONS = ("plugins/profile/*", "*/plugins/profile/*", "*/*/plugins/profile/*")
DATED = re.compile(r"^\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d$")

# Reading takes up to this times the file, measured by benchmarks/trace_reading.py.
MEMORY_FACTOR = 5
# JSON costs more: every event becomes an object of its own.
JSON_MEMORY_FACTOR = 12
GZIP_MAGIC = b"\x1f\x8b"
READ_CHUNK = 1 << 20


def find_files(path: Path) -> list[Path]:
    """Return the trace files that ``path`` stands for: itself, or the newest session's, one per host.

    Raises `TraceError` when there is none.
    """
    try:
        if path.is_file():
            return [path]
        if not path.is_dir():
            raise TraceError(
                f"{path} does not exist: name a trace file (.xplane.pb, .trace.json.gz) or the log "
                "folder given to the profiler."
            )
        folders = [path, *(found for pattern in SESSIONS for found in path.glob(pattern))]
        sessions = [(folder, _traces(folder)) for folder in folders if folder.is_dir()]
        sessions = [session for session in sessions if session[1]]
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}.") from None
    if not sessions:
        raise TraceError(
            f"{path} holds no trace: no .xplane.pb in it or in plugins/profile/*/ below it; give the "
            "folder that was handed to the profiler, and check that profiling was stopped."
        )
    if sessions[0][0] == path:
        return sessions[0][1]
    return max(sessions, key=lambda session: _age(*session))[1]


def _traces(folder: Path) -> list[Path]:
    names = sorted(item for item in folder.iterdir() if item.is_file())
    planes = [item for item in names if item.name.endswith(XPLANE)]
    return planes or [item for item in names if item.name.endswith(CHROME)]


def _age(folder: Path, files: list[Path]) -> tuple[bool, str, float]:
    """Sort sessions by the date in their name; those without one come first, by time of writing."""
    dated = bool(DATED.match(folder.name))
    return dated, folder.name if dated else "", max(file.stat().st_mtime for file in files)


def read_trace(path: Path, everything: bool = False) -> Trace:
    """Read one file, whatever its format.

    With ``everything``, lines and host events that no figure needs are kept (for an export).
    Raises `TraceError` when the file is missing, empty, truncated, damaged, no trace or too large.
    """
    from .chrome import read_chrome
    from .xspace import read_xspace

    try:
        buffer = _load(path)
        text = bytes(buffer.data[: min(buffer.size, 64)]).lstrip(b"\xef\xbb\xbf \t\r\n")
        if text[:1] in (b"{", b"["):
            return read_chrome(memoryview(buffer.data)[: buffer.size], path)
        trace = read_xspace(buffer, path, everything)
    except Malformed as error:
        raise TraceError(_explain(path, buffer, error)) from None
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}.") from None
    except (MemoryError, OverflowError):
        raise TraceError(_too_large(path)) from None
    if not trace.planes:
        raise TraceError(
            f"{path} holds a profile without any host or device plane: nothing was recorded; profile "
            "a few steps in the middle of training."
        )
    return trace


def _load(path: Path) -> Buffer:
    size = path.stat().st_size
    if not size:
        raise TraceError(
            f"{path} is empty: the profiler wrote nothing; profile again and check that it was stopped."
        )
    with path.open("rb") as file:
        magic = file.read(2)
        file.seek(0)
        if magic == GZIP_MAGIC:
            return _unzip(path, file.read(), _limit_bytes() // JSON_MEMORY_FACTOR)
        factor = JSON_MEMORY_FACTOR if path.suffix == ".json" else MEMORY_FACTOR
        if size * factor > _limit_bytes():
            raise MemoryError
        content = bytearray(size + PADDING)
        read = file.readinto(memoryview(content)[:size])
    if read != size:
        raise Malformed("the file changed while it was read", truncated=True)
    return Buffer(content)


def _unzip(path: Path, packed: bytes, limit: int) -> Buffer:
    """Unpack gzip, piece by piece: a small file may unpack to more than there is memory."""
    unpacker = zlib.decompressobj(wbits=31)
    content = bytearray()
    try:
        for first in range(0, len(packed), READ_CHUNK):
            piece = packed[first : first + READ_CHUNK]
            while piece and not unpacker.eof:
                content += unpacker.decompress(piece, READ_CHUNK * 16)
                piece = unpacker.unconsumed_tail
                if len(content) > limit:
                    raise MemoryError
    except zlib.error:
        raise TraceError(
            f"{path} is damaged: its gzip data cannot be unpacked; copy it again in binary mode."
        ) from None
    if not unpacker.eof:
        raise TraceError(f"{path} is truncated: its gzip data stop in the middle; copy it again.")
    if not content:
        raise TraceError(f"{path} is empty: nothing is packed in it; profile again.")
    content += bytes(PADDING)
    return Buffer(content)


def _explain(path: Path, buffer: Buffer, error: Malformed) -> str:
    data = buffer.data
    sample = bytes(data[: min(buffer.size, 1 << 20)])
    if sample.count(b"\xef\xbf\xbd") > max(8, len(sample) // 1000):
        return (
            f"{path} is corrupt: a text tool has replaced its binary bytes; copy the original again in "
            "binary mode."
        )
    if not _starts_like_a_trace(buffer):
        return (
            f"{path} is not a profiler trace: expected an .xplane.pb, a .trace.json(.gz) or a TF1 timeline."
        )
    if error.truncated:
        return f"{path} is truncated: it stops in the middle of the data; copy or record it again."
    return f"{path} is corrupt ({error}): copy or record it again."


def _starts_like_a_trace(buffer: Buffer) -> bool:
    """Whether the first bytes open a plane, an error, a warning or a host name of an XSpace."""
    if buffer.size < 2 or buffer.data[0] not in (0x0A, 0x12, 0x1A, 0x22):
        return False
    head = bytes(buffer.data[: min(buffer.size, 4096)])
    return b"/device:" in head or b"/host:" in head or b"Task Environment" in head


def _too_large(path: Path) -> str:
    return (
        f"{path} is too large to read in the {_limit_bytes() / 2**30:.1f} GiB of free memory: profile "
        "fewer steps (five to ten are enough) or read it on a larger machine."
    )


def _limit_bytes() -> int:
    """Return the memory that may be used: what the system has free, and what a container allows."""
    limits = [2**40]
    with contextlib.suppress(OSError, LookupError, ValueError):
        free = re.search(r"^MemAvailable:\s*(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)
        limits += [int(free[1]) * 1024] if free else []
    with contextlib.suppress(OSError, LookupError, ValueError):
        control = Path("/sys/fs/cgroup")
        used = re.search(r"^anon (\d+)", (control / "memory.stat").read_text(), re.MULTILINE)
        allowed = int((control / "memory.max").read_text())
        limits.append(allowed - (int(used[1]) if used else 0))
    return max(min(limits), 0)

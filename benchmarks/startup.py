"""How much faster a variant starts from the fork server than in a fresh interpreter.

Prints the median over several starts of: a fresh interpreter that imports tensorflow and keras; a
child of the fork server, from the request until it has run an empty script; their ratio.

    python benchmarks/startup.py [--pairs 5]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tfaudit import launch
from tfaudit.records import Target, VariantRequest, write
from tfaudit.session import Failed


def fresh_interpreter_s() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import tensorflow, keras"], check=True, capture_output=True)
    return time.perf_counter() - began


def forked_child_s(server: launch.ForkServer, folder: Path, script: Path) -> float:
    """From the request until the program, an empty one, has run: the worker then says so."""
    folder.mkdir()
    target = Target(kind="script", path=str(script), name=script.name)
    request = VariantRequest(
        variant="baseline",
        target=target,
        working_directory=str(folder),
        folder=str(folder),
        scratch=str(folder),
        seed=0,
        warm_up_s=0.0,
    )
    write(folder / "request.json", request)
    began = time.perf_counter()
    child = server.start(folder)
    while not isinstance(child.channel.receive(), Failed):
        pass
    elapsed = time.perf_counter() - began
    child.end()
    return elapsed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    pairs = parser.parse_args().pairs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "train.py"
        script.write_text("")
        server = launch.ForkServer(folder / "log")
        began = time.perf_counter()
        forked_child_s(server, folder / "first", script)
        print(f"fork server's own start: {time.perf_counter() - began:.2f} s, once per run")
        fresh, forked = [], []
        for number in range(pairs):
            fresh.append(fresh_interpreter_s())
            forked.append(forked_child_s(server, folder / str(number), script))
        server.close()
    print(f"fresh interpreter: {statistics.median(fresh):.2f} s")
    print(f"forked child:      {statistics.median(forked):.3f} s")
    ratios = [child / interpreter for child, interpreter in zip(forked, fresh, strict=True)]
    print(f"forked ÷ fresh:    {statistics.median(ratios):.3f} (median of {pairs} pairs)")


if __name__ == "__main__":
    main()

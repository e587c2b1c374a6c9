"""What becomes of targets that cannot be audited: one sentence each, and never a lost report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.tensorflow

MODEL = """
import keras, numpy as np, tensorflow as tf
def model():
    m = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    m.compile("sgd", "mse")
    return m
def data(n=64):
    return tf.data.Dataset.from_tensor_slices((np.ones((n, 4), "f4"), np.ones((n, 1), "f4"))).batch(8)
"""

#: Program, target, phase, kind, and words of the sentence.
BROKEN = {
    "an import that is not installed": (
        "import no_such_package", "", "load", "import", "imports no_such_package, which is not installed",
    ),
    "an exception at import": (
        "def f():\n    raise ValueError('bad <b>config</b>')\nf()", "", "load", "raised",
        "train.py raised ValueError: bad <b>config</b>.",
    ),
    "a script that never fits": ("print('done')", "", "load", "no-fit", "ended without calling Model.fit"),
    "sys.exit": ("import sys\nsys.exit(2)", "", "load", "exited", "called sys.exit(2) before Model.fit"),
    "missing arguments": (
        "import argparse as a\np = a.ArgumentParser()\np.add_argument('-d', required=True)\np.parse_args()",
        "", "load", "exited", "follow -- on tfaudit's command line",
    ),
    "a question to the user": ("input('go?')", "", "load", "raised", "asked for input"),
    "killing itself": (
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "", "load", "killed",
        "killed by SIGKILL in the phase 'load': the system may have run out of memory",
    ),
    "a segmentation fault": (
        "import ctypes\nctypes.string_at(0)", "", "load", "killed", "killed by SIGSEGV",
    ),
    "os._exit": ("import os\nos._exit(0)", "", "load", "no-result", "exit code 0"),
    "a factory that raises": (
        "def make():\n    raise KeyError('lr')", ":make", "load", "raised", "KeyError: 'lr'",
    ),
    "a factory that returns nothing": (
        "def make(): pass", ":make", "load", "returned", "make() returned None: return tfaudit.Job(",
    ),
    "a factory that returns no model": (
        "def make(): return 1, [2]", ":make", "load", "returned", "The model is an int, not a Keras model",
    ),
    "a name that is no function": ("make = 3", ":make", "load", "returned", "make is an int, not a function"),
    "an uncompiled model": (
        "import keras\ndef make(): return keras.Sequential([keras.layers.Dense(1)]), [1]", ":make", "load",
        "returned", "The model is not compiled",
    ),
    "an empty dataset": (
        f"{MODEL}\nmodel().fit(data().take(0))", "", "build", "no-data", "The dataset gave no batch",
    ),
    "fit called wrongly": (f"{MODEL}\nmodel().fit(data(), epoch=3)", "", "load", "raised", "'epoch'"),
    "a shape that does not fit": (
        f"{MODEL}\nmodel().fit(np.ones((8, 3)), np.ones((8, 1)), verbose=0)", "", "build", "raised",
        "Training raised ValueError",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_target_gives_one_sentence(case: str, program: Callable, measured: Callable) -> None:
    text, suffix, phase, kind, words = BROKEN[case]
    failure = measured(f"{program(text)}{suffix}")["baseline"].failure
    assert failure is not None
    assert (failure.phase, failure.kind) == (phase, kind)
    assert words in failure.message
    assert "\n" not in failure.message


def test_only_the_users_frames_are_shown(program: Callable, measured: Callable) -> None:
    """The traceback of an error in the program has its frames and none of tfaudit's or Python's."""
    path = program("def deep():\n    return 1 / 0\ndef main():\n    deep()\nmain()")
    failure = measured(str(path))["baseline"].failure
    assert failure.detail.count("File ") == 3
    assert failure.detail.count("train.py") == 3
    assert failure.detail.rstrip().endswith("ZeroDivisionError: division by zero")


def test_a_target_that_cannot_load_is_loaded_once(program: Callable, measured: Callable) -> None:
    """The other variants are not run, and say why."""
    results = measured(str(program("raise RuntimeError")), "xla", "bfloat16")
    assert results["baseline"].status == "failed"
    assert {results[name].status for name in ("xla", "bfloat16")} == {"not-run"}
    assert "The baseline failed" in results["xla"].failure.message


def test_a_program_that_loops_is_stopped_where_it_was(program: Callable, measured: Callable) -> None:
    """The time-out tells what to do, and the stack shows the line."""
    path = program("import time\ndef train():\n    while True:\n        time.sleep(1)\ntrain()")
    failure = measured(str(path), phase_timeout_s=2.0)["baseline"].failure
    assert (failure.phase, failure.kind) == ("load", "timed-out")
    assert "did not reach Model.fit within 2 s" in failure.message
    assert "train.py" in failure.detail and "in train" in failure.detail


def test_processes_that_a_program_leaves_are_ended(
    program: Callable, measured: Callable, tmp_path: Path
) -> None:
    """Children in the program's process group, and daemons that left it, are gone afterwards."""
    path = program(f"""
        import subprocess, sys
        for new_session in (False, True):
            child = subprocess.Popen(["sleep", "300"], start_new_session=new_session)
            with open({str(tmp_path / "pids")!r}, "a") as file:
                print(child.pid, file=file)
        {MODEL.replace(chr(10), chr(10) + "        ")}
        model().fit(data(), verbose=0)
    """)
    assert measured(str(path))["baseline"].status == "measured"
    pids = [int(line) for line in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2
    assert not [pid for pid in pids if _alive(pid)]


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_script_keeps_its_world(program: Callable, measured: Callable) -> None:
    """It sees its arguments, its own folder on the path and in the imports, and may move and print."""
    program("VALUE = 8", "neighbour.py")
    path = program(f"""
        import os, sys, neighbour
        assert __name__ == "__main__" and sys.argv[1:] == ["--epochs", "3"], sys.argv
        assert os.getcwd() == os.path.dirname(os.path.abspath(__file__))
        print("x" * 1_000_000)
        os.chdir("/")
        {MODEL.replace(chr(10), chr(10) + "        ")}
        if __name__ == "__main__":
            model().fit(data(neighbour.VALUE * 8), epochs=int(sys.argv[2]), verbose=0)
            open(os.path.join(sys.path[0], "after_fit"), "w")
    """)
    result = measured(str(path), arguments=("--epochs", "3"))["baseline"]
    assert result.failure is None
    assert sum(block.steps for block in result.blocks) >= 4
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["neighbour.py", "train.py"]


def test_one_variant_that_fails_leaves_the_others(program: Callable, measured: Callable) -> None:
    """A model that is killed under one policy is measured under the others."""
    path = program(f"""
        {MODEL.replace(chr(10), chr(10) + "        ")}
        import os
        if keras.config.dtype_policy().name == "mixed_float16":
            os.abort()
        model().fit(data(), verbose=0)
    """)
    results = measured(str(path), "float16", "bfloat16")
    assert results["float16"].failure.signal == "SIGABRT"
    assert [results[name].status for name in ("baseline", "bfloat16")] == ["measured", "measured"]


def test_a_program_that_writes_into_the_runners_socket_is_timed_out(
    program: Callable, measured: Callable
) -> None:
    """Its text is no message; the runner waits for the rest of it no longer than for anything else."""
    path = program("""
        import os, time
        for descriptor in range(3, 100):
            try:
                os.write(descriptor, b"0000 hello")
            except OSError:
                pass
        time.sleep(60)
    """)
    failure = measured(str(path), phase_timeout_s=3.0)["baseline"].failure
    assert failure.kind in ("timed-out", "no-result")


def test_an_error_whose_words_are_no_unicode_is_told(program: Callable, measured: Callable) -> None:
    failure = measured(str(program("raise ValueError('lone \\ud800 surrogate')")))["baseline"].failure
    assert failure.message.endswith("train.py raised ValueError: lone ? surrogate.")

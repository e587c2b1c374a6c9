"""What the project's own source says, read without running it."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tfaudit.program.source import dotted, read
from tfaudit.records import Source, Tie
from tfaudit.target import find


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Source]:
    """Reads the source of a target in a project of those files."""

    def read_project(target: str = "train.py", **files: str) -> Source:
        for name, text in files.items():
            path = tmp_path / f"{name.replace('__in__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        return read(find(target, (), tmp_path))

    return read_project


Project = Callable[..., Source]


def test_imports_are_full_names_with_their_first_place(project: Project) -> None:
    source = project(train="import os\nimport keras.layers as kl\nfrom tensorflow import data\nimport os")
    assert source.imports == {
        "os": "train.py:1",
        "keras.layers": "train.py:2",
        "tensorflow": "train.py:3",
        "tensorflow.data": "train.py:3",
    }
    assert source.files == ("train.py",)


def test_imports_inside_of_functions_count(project: Project) -> None:
    assert project(train="def f():\n    import mlflow").imports == {"mlflow": "train.py:2"}


def test_imports_are_followed_into_the_project_and_no_further(project: Project) -> None:
    """Nothing that is installed is read, though it be imported."""
    source = project(
        train="import click\nimport data", data="import json\nimport deeper", deeper="import wandb"
    )
    assert source.files == ("train.py", "data.py", "deeper.py")
    assert source.imports["wandb"] == "deeper.py:1"


def test_files_that_nothing_imports_are_not_read(project: Project) -> None:
    source = project(train="import data", data="", unrelated="import wandb")
    assert source.files == ("train.py", "data.py")
    assert "wandb" not in source.imports


def test_files_that_import_each_other_are_read_once(project: Project) -> None:
    assert project(train="import data", data="import train").files == ("train.py", "data.py")


@pytest.mark.parametrize(
    "statement",
    ["from lib import data", "import lib.data", "from lib.data import load", "from lib.data import *"],
)
def test_a_package_of_the_project_is_followed(statement: str, project: Project) -> None:
    source = project(train=statement, lib__in____init__="", lib__in__data="import wandb")
    assert source.imports["wandb"] == "data.py:1"


@pytest.mark.parametrize("statement", ["from . import data", "from .data import load", "from .. import lib"])
def test_relative_imports_are_followed(statement: str, project: Project) -> None:
    source = project(
        "app.jobs.train",
        app__in____init__="",
        app__in__jobs__in____init__="",
        app__in__jobs__in__train=statement,
        app__in__jobs__in__data="import wandb",
        app__in__lib="import wandb",
    )
    assert "wandb" in source.imports


def test_a_module_follows_imports_from_the_root_of_its_package(project: Project) -> None:
    source = project(
        "app.jobs.train",
        app__in____init__="",
        app__in__jobs__in____init__="",
        app__in__jobs__in__train="import app.lib",
        app__in__lib="import wandb",
    )
    assert source.imports["wandb"] == "lib.py:1"


def test_a_package_follows_imports_of_itself(project: Project) -> None:
    source = project(
        "app", app__in____init__="", app__in____main__="from app.lib import f", app__in__lib="import wandb"
    )
    assert "wandb" in source.imports


def test_the_package_around_an_imported_module_is_read(project: Project) -> None:
    source = project(train="import lib.data", lib__in____init__="import wandb", lib__in__data="")
    assert "wandb" in source.imports


def test_a_broken_neighbour_is_passed_over(project: Project) -> None:
    source = project(train="import data\nimport more", data="def:", more="import wandb")
    assert source.imports["wandb"] == "more.py:1"


# Calls ----------------------------------------------------------------------------------------------


def test_calls_are_dotted_names_as_written_with_their_first_place(project: Project) -> None:
    source = project(
        train="""
        model.fit(data, callbacks=[
            tf.keras.callbacks.EarlyStopping(patience=3),
            EarlyStopping(),
        ])
        model.fit(data)
        """
    )
    assert source.calls == {
        "model.fit": "train.py:2",
        "tf.keras.callbacks.EarlyStopping": "train.py:3",
        "EarlyStopping": "train.py:4",
    }


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("f()", "f"),
        ("a.b.c()", "a.b.c"),
        ("build().fit()", ".fit"),
        ("models[0].fit()", ".fit"),
        ("build().model.fit()", ".model.fit"),
        ("f()()", ""),
        ("(lambda: 1)()", ""),
    ],
)
def test_the_name_of_a_call(call: str, name: str) -> None:
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    assert dotted(node.func) == name


# Uses -----------------------------------------------------------------------------------------------


def test_uses_are_full_names_whatever_they_are_called(project: Project) -> None:
    source = project(
        train="""
        import keras_tuner as kt
        from tensorflow import device as d
        tuner = kt.Hyperband(build)
        with d("/GPU:0"):
            tuner.search(data)
        """
    )
    assert source.uses == {"keras_tuner.Hyperband": "train.py:4", "tensorflow.device": "train.py:5"}


def test_what_is_only_imported_is_not_used(project: Project) -> None:
    assert project(train="import optuna").uses == {}


def test_modules_of_the_project_are_not_installed_packages(project: Project) -> None:
    """Its own ``optuna.py`` is read; what it uses is used by the program."""
    source = project(
        train="import optuna\nimport optuna_like\noptuna.create_study()\noptuna_like.create_study()",
        optuna="import json\njson.dumps({})",
        optuna_like="",
    )
    assert source.uses == {"json.dumps": "optuna.py:2"}


def test_the_first_use_of_a_package_or_something_in_it(project: Project) -> None:
    source = project(train="import ray.tune, rays\nrays.tune()\nray.init()\nray.tune.run(f)")
    assert source.first_use("ray.tune", "optuna") == ("ray.tune.run", "train.py:4")
    assert source.first_use("rays") == ("rays.tune", "train.py:2")
    assert source.first_use("ray.tune.r") is None


def test_ties_have_their_place(project: Project) -> None:
    source = project(train="import model", model="import tensorflow as tf\nNUM_GPUS = 4\n")
    assert source.ties == (Tie(kind="count", text="NUM_GPUS = 4", place="model.py:2"),)


def test_the_main_block_of_another_module_is_not_read(project: Project) -> None:
    block = 'import optuna\nif __name__ == "__main__":\n    optuna.create_study()'
    assert project(train="import search", search=block).uses == {}
    assert project(train=block).uses == {"optuna.create_study": "train.py:3"}


# A rate ---------------------------------------------------------------------------------------------

RATES = [
    "images_per_sec = n / t",
    "samples_per_s = n / t",
    "samples_per_second = n / t",
    "n_examples_per_second = n / t",
    "print(f'{rate} samples/s')",
    "print(f'{rate} images/sec')",
    "print(f'{rate} tokens per second')",
    "print(f'{rate} Frames per secs.')",
    "logs['sequencesPerSecond'] = rate",
    "print(f'{rate} samples / s')",
    "print(f'{rate} records/s, loss {loss}')",
]

NO_RATES = [
    "samples = 3",
    "samples_per_step = 32",
    "images_per_set = 10",
    "samples_per_shard = 10",
    "samples_per_session = 10",
    "steps_per_second_limit",
    "print('3 epochs per second')",
    "print('images/s3')",
    "samples_per_class = 5",
]


@pytest.mark.parametrize("text", RATES)
def test_text_that_speaks_of_samples_per_second(text: str, project: Project) -> None:
    assert project(train=f"n = t = rate = 1\n{text}").throughput == "train.py:2"


@pytest.mark.parametrize("text", NO_RATES)
def test_text_that_does_not(text: str, project: Project) -> None:
    assert project(train=text).throughput is None


@pytest.mark.parametrize("text", ["images_per_sec_per_gpu = 1", "samples_per_second_total = 1"])
def test_a_rate_may_be_part_of_a_longer_name(text: str, project: Project) -> None:
    assert project(train=text).throughput == "train.py:1"


def test_a_rate_may_be_in_another_file_of_the_project(project: Project) -> None:
    assert project(train="import logs", logs="\n\nx = 'samples/s'").throughput == "logs.py:3"


# Stopping -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["self.model.stop_training = True", "model.stop_training = loss > 3"])
def test_setting_stop_training_is_noted(text: str, project: Project) -> None:
    assert project(train=f"\n{text}").stops == "train.py:2"


@pytest.mark.parametrize("text", ["stop_training = True", "stop(training)", "'model.stop_training = True'"])
def test_other_names_are_not(text: str, project: Project) -> None:
    assert project(train=text).stops is None


def test_reading_stop_training_stops_nothing(project: Project) -> None:
    assert project(train="if model.stop_training:\n    print('stopped')").stops is None


def test_a_file_that_says_nothing(project: Project) -> None:
    assert project(train="") == Source(files=("train.py",))

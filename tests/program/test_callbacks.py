"""Which callbacks take part in an audit: those that write nothing and talk to nobody."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import pytest

from tfaudit.program.callbacks import is_keras, split, why_left_out
from tfaudit.records import CallbackFact

# The callbacks' code names these; none of it ever runs.
requests = plt = np = pd = shutil = None


def made(name: str, module: str, *bases: type, **members: Any) -> type:
    return type(name, bases or (object,), {"__module__": module, **members})


Callback = made("Callback", "keras.src.callbacks.callback")


def keras(name: str) -> type:
    return made(name, f"keras.src.callbacks.{name.lower()}", Callback)


# Keras's own ----------------------------------------------------------------------------------------

WRITERS = ["BackupAndRestore", "CSVLogger", "ModelCheckpoint", "OrbaxCheckpoint", "TensorBoard"]
HARMLESS = ["EarlyStopping", "History", "LearningRateScheduler", "ReduceLROnPlateau", "TerminateOnNaN"]


@pytest.mark.parametrize("name", WRITERS)
def test_those_of_keras_that_write_are_left_out(name: str) -> None:
    assert why_left_out(keras(name)()) == "writes files"
    assert why_left_out(made(name, "tf_keras.src.callbacks")()) == "writes files"


def test_the_one_of_keras_that_talks_to_a_server_is_left_out() -> None:
    assert why_left_out(keras("RemoteMonitor")()) == "talks to a server"


@pytest.mark.parametrize("name", HARMLESS)
def test_the_others_of_keras_are_kept(name: str) -> None:
    assert why_left_out(keras(name)()) == ""


def test_a_class_of_the_users_with_such_a_name_is_judged_by_its_code() -> None:
    assert why_left_out(made("ModelCheckpoint", "train", Callback)()) == ""


def test_a_class_made_from_one_that_writes_is_left_out() -> None:
    assert why_left_out(made("Best", "train", keras("ModelCheckpoint"))()) == "writes files"


def test_tfaudits_own_is_kept() -> None:
    assert why_left_out(made("ThroughputCallback", "tfaudit.throughput", Callback)()) == ""


# Trackers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("wandb.integration.keras.callbacks", "wandb"),
        ("mlflow.tensorflow.callback", "mlflow"),
        ("neptune.integrations.keras", "neptune"),
        ("comet_ml.callbacks", "comet_ml"),
    ],
)
def test_trackers_are_left_out(module: str, package: str) -> None:
    tracker = made("Logger", module, Callback)
    assert why_left_out(tracker()) == f"reports to {package}"
    assert why_left_out(made("Mine", "train", tracker)()) == f"reports to {package}"


def test_a_package_whose_name_begins_like_a_trackers_is_no_tracker() -> None:
    assert why_left_out(made("Logger", "wandbish.keras", Callback)()) == ""


# The user's own -------------------------------------------------------------------------------------


class Prints(Callback):  # type: ignore[misc, valid-type]
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        print(epoch, logs)


class Opens(Callback):  # type: ignore[misc, valid-type]
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        with open("log.txt", "a") as file:  # noqa: PTH123
            file.write(str(logs))


class SavesTheModel(Callback):  # type: ignore[misc, valid-type]
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.model.save(f"model-{epoch}.keras")


class SavesInAHelper(Callback):  # type: ignore[misc, valid-type]
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.keep(epoch)

    def keep(self, epoch: int) -> None:
        self.model.save_weights("best.weights.h5")


class SavesInANestedFunction(Callback):  # type: ignore[misc, valid-type]
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        def later() -> None:
            Path("log.txt").write_text(str(logs))

        later()


class MakesAFolder(Callback):  # type: ignore[misc, valid-type]
    def on_train_begin(self, logs: Any = None) -> None:
        os.makedirs("runs", exist_ok=True)  # noqa: PTH103


class Draws(Callback):  # type: ignore[misc, valid-type]
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        plt.savefig("curve.png")


class Inherits(Opens): ...


WRITING = {
    Opens: "open",
    SavesTheModel: "save",
    SavesInAHelper: "save_weights",
    SavesInANestedFunction: "write_text",
    MakesAFolder: "makedirs",
    Draws: "savefig",
    Inherits: "open",
}


@pytest.mark.parametrize("kind", WRITING)
def test_a_callback_whose_code_may_write_is_left_out(kind: type) -> None:
    assert why_left_out(kind()) == f"may write or send something (its code uses {WRITING[kind]})"


def test_a_callback_that_only_prints_is_kept() -> None:
    assert why_left_out(Prints()) == ""


class SavesInAStaticMethod(Callback):  # type: ignore[misc, valid-type]
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.keep(logs)

    @staticmethod
    def keep(logs: Any) -> None:
        Path("log.txt").write_text(str(logs))


class SavesInAProperty(Callback):  # type: ignore[misc, valid-type]
    @property
    def log(self) -> Any:
        return open("log.txt", "a")  # noqa: PTH123


class Exports(Callback):  # type: ignore[misc, valid-type]
    def on_train_end(self, logs: Any = None) -> None:
        self.model.export("saved")


class Posts(Callback):  # type: ignore[misc, valid-type]
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        requests.post("https://example.org/metrics", json=logs)


class SavesText(Callback):  # type: ignore[misc, valid-type]
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        np.savetxt("losses.txt", [logs["loss"]])


class Pickles(Callback):  # type: ignore[misc, valid-type]
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        pd.DataFrame(logs).to_pickle("logs.pkl")


MISSED = [
    pytest.param(SavesInAStaticMethod, id="a static method"),
    pytest.param(SavesInAProperty, id="a property"),
    pytest.param(Exports, id="model.export"),
    pytest.param(Posts, id="requests.post"),
    pytest.param(SavesText, id="numpy.savetxt"),
    pytest.param(Pickles, id="to_pickle"),
]


@pytest.mark.parametrize("kind", MISSED)
def test_these_write_or_talk_too(kind: type) -> None:
    assert why_left_out(kind()) != ""


# Functions given to a callback of Keras -------------------------------------------------------------


def log_to_a_file(epoch: int, logs: Any) -> None:
    Path("log.txt").write_text(str(logs))


class Plotter:
    def draw(self, epoch: int, logs: Any) -> None:
        plt.savefig("curve.png")


def with_functions(**functions: Any) -> Any:
    """A callback of Keras that keeps the user's functions, as LambdaCallback does."""
    callback = keras("LambdaCallback")()
    vars(callback).update(functions)
    return callback


def test_functions_that_write_are_seen_behind_a_callback_of_keras() -> None:
    assert why_left_out(with_functions(on_epoch_end=log_to_a_file)) == (
        "may write or send something (its code uses write_text)"
    )
    assert why_left_out(with_functions(on_epoch_end=lambda epoch, logs: open("log"))) == (  # noqa: PTH123, SIM115
        "may write or send something (its code uses open)"
    )
    assert why_left_out(with_functions(on_epoch_end=Plotter().draw)) == (
        "may write or send something (its code uses savefig)"
    )


def test_functions_that_write_nothing_are_kept() -> None:
    assert why_left_out(with_functions(on_epoch_end=lambda epoch, logs: print(logs), patience=3)) == ""


def test_a_partial_of_a_function_that_writes_is_left_out() -> None:
    assert why_left_out(with_functions(on_epoch_end=functools.partial(log_to_a_file, 3))) != ""


# Splitting ------------------------------------------------------------------------------------------


def test_no_callbacks() -> None:
    assert split(None) == ([], [])
    assert split([]) == ([], [])


def test_those_kept_stay_in_their_order_and_all_are_told() -> None:
    stop, save, prints = keras("EarlyStopping")(), keras("ModelCheckpoint")(), Prints()
    kept, facts = split([stop, save, prints])
    assert kept == [stop, prints]
    assert facts == [
        CallbackFact(
            name="EarlyStopping",
            module="keras.src.callbacks.earlystopping",
            bases=("Callback",),
            kept=True,
        ),
        CallbackFact(
            name="ModelCheckpoint",
            module="keras.src.callbacks.modelcheckpoint",
            bases=("Callback",),
            kept=False,
            reason="writes files",
        ),
        CallbackFact(name="Prints", module=__name__, bases=("Callback",), kept=True),
    ]


def test_one_callback_without_a_list() -> None:
    stop = keras("EarlyStopping")()
    kept, facts = split(stop)
    assert kept == [stop] and len(facts) == 1


def test_a_list_of_callbacks_that_keras_made() -> None:
    stop, save = keras("EarlyStopping")(), keras("ModelCheckpoint")()
    made_list = keras("CallbackList")()
    made_list.callbacks = [stop, save]
    kept, facts = split(made_list)
    assert kept == [stop] and [fact.kept for fact in facts] == [True, False]


def test_a_tuple_of_callbacks() -> None:
    stop = keras("EarlyStopping")()
    assert split((stop,))[0] == [stop]


def test_the_settings_that_checks_read_are_told_as_text() -> None:
    board = keras("TensorBoard")()
    board.update_freq, board.log_dir = 100, "logs"
    assert split([board])[1][0].options == {"update_freq": "100"}


def test_the_batches_that_tensorboard_profiles_are_told() -> None:
    """Keras keeps them under other names than the argument's."""
    board = keras("TensorBoard")()
    board._start_batch, board._stop_batch = 10, 20
    assert split([board])[1][0].options == {"profile_batch": "10, 20"}


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (CallbackFact("TensorBoard", "keras.src.callbacks.tensorboard", ("Callback",), kept=False), True),
        (CallbackFact("TensorBoard", "tf_keras.src.callbacks", ("Callback",), kept=False), True),
        (CallbackFact("Board", "train", ("TensorBoard", "Callback"), kept=False), True),
        (CallbackFact("TensorBoard", "train", ("Callback",), kept=True), False),
        (CallbackFact("History", "keras.src.callbacks.history", ("Callback",), kept=True), False),
    ],
)
def test_a_callback_of_kerass_own_or_made_from_it(fact: CallbackFact, expected: bool) -> None:
    assert is_keras(fact, "TensorBoard", "BackupAndRestore") is expected


class ReadsValidation(Callback):  # type: ignore[misc, valid-type]
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        print("loss", logs["val_loss"])


def test_a_callback_that_needs_validation_is_left_out() -> None:
    """An audit runs none, so its key would be missing and the callback would fail."""
    assert why_left_out(ReadsValidation()) == "reads val_loss, and an audit runs no validation"

"""Names in a source file, resolved to what they were imported as."""

from __future__ import annotations

import ast
import textwrap

import pytest

from tfaudit.program.names import walk

#: Modules of the project in these tests.
OWN = {"mine", "mine.layers"}


def called(text: str, *, is_main: bool = True) -> list[str]:
    """The full names of all that is called, in order; empty for the program's own."""
    tree = ast.parse(textwrap.dedent(text))
    found = walk(tree, OWN.__contains__, is_main)
    return [setting.full(node.func) for node, setting in found if isinstance(node, ast.Call)]


def guards(text: str) -> dict[str, bool]:
    """Whether each function that is called by a bare name runs under a guard."""
    found = walk(ast.parse(textwrap.dedent(text)), OWN.__contains__, True)
    calls = [(node, setting) for node, setting in found if isinstance(node, ast.Call)]
    return {node.func.id: setting.guarded for node, setting in calls if isinstance(node.func, ast.Name)}


def constant(text: str) -> object:
    """What the argument of ``f`` is known to be."""
    found = walk(ast.parse(textwrap.dedent(text)), OWN.__contains__, True)
    return next(
        setting.constant(node.args[0])
        for node, setting in found
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "f"
    )


# What names stand for -------------------------------------------------------------------------------

NAMES = {
    "as it is": ("import tensorflow\ntensorflow.device('x')", "tensorflow.device"),
    "under another name": ("import tensorflow as tf\ntf.device('x')", "tensorflow.device"),
    "a part of a package": ("import keras.callbacks\nkeras.callbacks.A()", "keras.callbacks.A"),
    "a part under another name": ("import keras.layers as kl\nkl.Dense(1)", "keras.layers.Dense"),
    "from": ("from tensorflow import device\ndevice('x')", "tensorflow.device"),
    "from, under another name": ("from tensorflow import device as d\nd('x')", "tensorflow.device"),
    "an earlier version": ("import tensorflow.compat.v1 as tf\ntf.device('x')", "tensorflow.device"),
    "replaced by its earlier version": (
        "import tensorflow as tf\ntf = tf.compat.v1\ntf.device('x')",
        "tensorflow.device",
    ),
    "everything of a module": ("from keras.callbacks import *\nTensorBoard()", "keras.callbacks.TensorBoard"),
    "a function built in, all the same": ("from keras.callbacks import *\nprint()", ""),
    "an alias": ("import tensorflow as tf\nk = tf.keras\nk.Model()", "tensorflow.keras.Model"),
    "an alias of an alias": (
        "import tensorflow as tf\nk = tf.keras\nl = k.layers\nl.Dense(1)",
        "tensorflow.keras.layers.Dense",
    ),
    "within a function": ("def f():\n    import optuna\n    optuna.create_study()", "optuna.create_study"),
    "used in a function": ("import optuna\ndef f():\n    optuna.create_study()", "optuna.create_study"),
    "used in a method": (
        "import optuna\nclass A:\n    def f(self):\n        optuna.create_study()",
        "optuna.create_study",
    ),
    "as a decorator": ("import ray\n@ray.remote()\ndef f(): pass", "ray.remote"),
    "in a lambda": ("import ray\nf = lambda x: ray.init()", "ray.init"),
    "where it may be missing": (
        "try:\n    import optuna\nexcept ImportError:\n    optuna = None\noptuna.create_study()",
        "optuna.create_study",
    ),
    "the first of two ways": (
        "try:\n    import tensorflow.keras as k\nexcept ImportError:\n    import keras as k\nk.Model()",
        "tensorflow.keras.Model",
    ),
}

OWN_NAMES = {
    "a function of the file": "def device(x): ...\ndevice('x')",
    "a class of the file": "class TensorBoard: ...\nTensorBoard()",
    "a module of the project": "import mine\nmine.device('x')",
    "a function of the project": "from mine.layers import Dense\nDense(1)",
    "a relative import": "from .optuna import create_study\ncreate_study()",
    "a parameter": "import tensorflow as tf\ndef f(tf):\n    tf.device('x')",
    "another parameter": "import tensorflow as tf\ndef f(*, tf=None):\n    tf.device('x')",
    "a local variable": "import tensorflow as tf\ndef f():\n    tf = other()\n    tf.device('x')",
    "a loop's variable": "import optuna\nfor optuna in trials:\n    optuna.suggest()",
    "a with block's variable": "import optuna\nwith study as optuna:\n    optuna.suggest()",
    "an unpacked variable": "import optuna\noptuna, b = pair\noptuna.suggest()",
    "a comprehension's variable": "from optuna import *\n[name.suggest() for name in names]",
    "a case's variable": "from optuna import *\nmatch x:\n    case [study]:\n        study.suggest()",
    "everything of two modules": "from optuna import *\nfrom keras import *\nModel()",
    "everything of a module of the project, too": "from optuna import *\nfrom mine import *\nsuggest()",
    "a caught error": "import optuna\ntry: ...\nexcept E as optuna:\n    optuna.suggest()",
    "what nothing binds": "device('x')",
    "a method of a call": "import tensorflow as tf\ntf.train.Checkpoint\nother().restore('x')",
    "a method of an object": "import tensorflow as tf\nmodel = build\nmodel.device('x')",
}


@pytest.mark.parametrize("case", NAMES)
def test_what_a_name_stands_for(case: str) -> None:
    text, full = NAMES[case]
    assert called(text)[-1] == full


@pytest.mark.parametrize("case", OWN_NAMES)
def test_the_programs_own_stand_for_nothing_else(case: str) -> None:
    assert called(OWN_NAMES[case])[-1] == ""


def test_a_name_bound_in_a_function_is_that_functions_alone() -> None:
    text = "import optuna\ndef f():\n    optuna = other\n    optuna.a()\ndef g():\n    optuna.b()"
    assert called(text) == ["", "optuna.b"]


def test_a_method_binds_no_name_of_the_module() -> None:
    text = "from tensorflow import device\nclass A:\n    def device(self): ...\ndevice('x')"
    assert called(text)[-1] == "tensorflow.device"


# What runs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", ["TYPE_CHECKING", "typing.TYPE_CHECKING", "False", "0"])
def test_what_never_runs_is_left_out(test: str) -> None:
    text = f"import a, typing\nfrom typing import TYPE_CHECKING\nif {test}:\n    a.f()\nelse:\n    a.g()"
    assert called(text) == ["a.g"]


def test_the_main_block_of_an_imported_module_does_not_run() -> None:
    text = 'import a\nif __name__ == "__main__":\n    a.f()\na.g()'
    assert called(text) == ["a.f", "a.g"]
    assert called(text, is_main=False) == ["a.g"]


def test_text_is_no_code() -> None:
    text = '''
    """import optuna; optuna.create_study()"""
    import optuna  # optuna.create_study()
    "optuna.create_study()"
    '''
    assert called(text) == []


def test_deep_nesting_is_walked() -> None:
    text = "import a\nx = " + "+".join(["a.f()"] * 900)
    assert len(called(text)) == 900


# Guards ---------------------------------------------------------------------------------------------

GUARDED = [
    "if tf.config.list_physical_devices('GPU'):\n    f()",
    "if not tf.config.list_physical_devices('GPU'):\n    pass\nelse:\n    f()",
    "gpus = 1\nif gpus:\n    f()",
    "found = tf.config.list_physical_devices('GPU')\nif found:\n    f()",
    "found = len(tf.config.list_logical_devices('TPU'))\nif found > 1:\n    f()",
    "if args.gpu:\n    f()",
    "if args['use_cuda']:\n    f()",
    "if args.device == 'cuda':\n    f()",
    "if os.environ.get('FAST'):\n    f()",
    "if shutil.which('nvidia-smi'):\n    f()",
    "if sys.platform == 'linux':\n    f()",
    "x = f() if gpus else g",
    "try:\n    f()\nexcept Exception:\n    pass",
    "try:\n    pass\nexcept (RuntimeError, KeyError):\n    f()",
    "try:\n    f()\nexcept:\n    pass",
    "if gpus:\n    def g():\n        f()",
    "match args.device:\n    case 'gpu':\n        f()",
    "while gpus:\n    f()",
]

UNGUARDED = [
    "f()",
    "if training:\n    f()",
    "if __name__ == '__main__':\n    f()",
    "if tf.config.list_physical_devices('GPU'):\n    pass\nf()",
    "try:\n    f()\nfinally:\n    pass",
    "try:\n    f()\nexcept KeyboardInterrupt:\n    pass",
    "try:\n    f()\nexcept (KeyboardInterrupt, SystemExit):\n    pass",
    "try:\n    pass\nexcept Exception:\n    pass\nfinally:\n    f()",
]


@pytest.mark.parametrize("text", GUARDED)
def test_what_stands_under_a_condition_on_the_machine(text: str) -> None:
    assert guards(text)["f"] is True


@pytest.mark.parametrize("text", UNGUARDED)
def test_what_does_not(text: str) -> None:
    assert guards(text)["f"] is False


# Constants ------------------------------------------------------------------------------------------

CONSTANTS = {
    "a literal": ("f('/GPU:0')", "/GPU:0"),
    "a name bound once": ("D = '/GPU:0'\nf(D)", "/GPU:0"),
    "a module's name, in a function": ("D = '/GPU:0'\ndef g():\n    f(D)", "/GPU:0"),
    "bound twice": ("D = '/GPU:0'\nif x:\n    D = '/CPU:0'\nf(D)", None),
    "chosen": ("D = '/GPU:0' if x else '/CPU:0'\nf(D)", None),
    "counted up": ("D = 1\nD += 1\nf(D)", None),
    "a parameter of that name": ("D = '/GPU:0'\ndef g(D):\n    f(D)", None),
    "an argument's attribute": ("f(args.device)", None),
    "a text with a number in it": ("f(f'/GPU:{i}')", None),
    "bound nowhere": ("f(D)", None),
    "annotated": ("D: str = '/GPU:0'\nf(D)", "/GPU:0"),
}


@pytest.mark.parametrize("case", CONSTANTS)
def test_constants(case: str) -> None:
    text, value = CONSTANTS[case]
    assert constant(text) == value

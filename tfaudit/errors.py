"""The few kinds of error that tfaudit reports itself, each one sentence with what to do."""


class TfauditError(Exception):
    """An expected failure: ``str(error)`` is one sentence that says what was wrong and what to do.

    ``exit_code`` is what the command line ends with.
    """

    exit_code = 3


class UsageError(TfauditError):
    """The command, its options, the target or an output folder cannot be used as given."""

    exit_code = 2


class MeasurementError(TfauditError):
    """Nothing could be measured."""


class TraceError(TfauditError):
    """A profiler trace could not be read."""

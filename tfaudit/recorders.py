"""What the training loops report to: recorders that time steps, log them or trace them, in the child.

The clock is a parameter, in nanoseconds.
"""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from .records import Block, WarmUp
from .session import Channel, Finish, Measured, PhaseStarted, Ready, Warm

Clock = Callable[[], int]

#: Warm-up ends after so many steps beyond the first *and* the shortest time, once the last third of its steps
#: is not faster than the third before by more than `STILL_WARMING`; or after the longest time.
WARM_UP_STEPS, LONGEST_WARM_UP_S, STILL_WARMING = 5, 10.0, 0.1

#: After a pause a process is slower for some 50 ms, which costs it about 10 ms in all. Where one step takes
#: longer than it is given to settle, none is corrected, and a block is longer by at least this factor.
LONG_BLOCK = 8

#: Steps of a variant that is logged, traced.
LOGGED_STEPS, TRACED_STEPS, LONGEST_TRACE_S = 2, 10, 20.0

_NS = 1_000_000_000


class Enough(BaseException):
    """Leaves the training loop; no ``except Exception`` of the user's stops it."""


class NoData(Exception):
    """The data ended before anything could be measured; the message is the sentence to show.

    ``kind`` is ``no-data`` when there was none, ``data-ended`` when there was too little.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Recorder(Protocol):
    """What the training loops report to."""

    def begin_epoch(self) -> None: ...

    def end_epoch(self) -> None: ...

    def around_step(self) -> contextlib.AbstractContextManager[Any]: ...

    def after_step(self, steps: int, samples: Any, loss: Any) -> None: ...


class Timing:
    """Times steps: the first, the warm-up, then block after block as the runner asks.

    ``samples`` and ``loss`` may be device tensors; they are read only at the end of a block, after
    ``finish_device_work``, so that reading them costs the timed steps nothing. ``counted``, if there is one,
    tells steps and samples since the start in their place.
    """

    def __init__(
        self,
        channel: Channel,
        finish_device_work: Callable[[], None],
        warm_up_steps: int = WARM_UP_STEPS,
        warm_up_s: float = 1.0,
        counted: Callable[[], tuple[int, int]] | None = None,
        clock: Clock = time.perf_counter_ns,
    ) -> None:
        self._channel = channel
        self._finish_device_work = finish_device_work
        self._warm_up_steps, self._warm_up_s = warm_up_steps, warm_up_s
        self._counted, self._counted_before = counted, (0, 0)
        self._clock = clock
        self._first_ns: int | None = None
        self._warm = False
        self._ever = 0
        self._min_steps, self._min_ns, self._max_ns = 0, 0, 0
        self._typical_ns, self._settle_ns, self._settle_until = 0.0, 0, 0
        self._clear()
        self._last, self._carried_ns = clock(), 0

    def _clear(self) -> None:
        self._settling_ns: list[int] = []
        self._step_ns: list[int] = []
        self._samples: list[Any] = []
        self._steps = 0
        self._elapsed_ns = 0
        self._epoch_starts: list[int] = []
        self._loss: Any = None
        self._losses: dict[int, Any] = {}

    def end_epoch(self) -> None:
        """Stop the clock: what lies between two epochs is no part of a step."""
        self._carried_ns = self._clock() - self._last

    def begin_epoch(self) -> None:
        """Start the clock again. What followed the last step, as its callbacks do, counts with the next."""
        self._epoch_starts.append(len(self._settling_ns) + len(self._step_ns))
        self._last, self._carried_ns = self._clock() - self._carried_ns, 0

    def around_step(self) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def after_step(self, steps: int, samples: Any, loss: Any) -> None:
        if self._first_ns is None:
            self._finish_device_work()
        now = self._clock()
        duration_ns, self._last = now - self._last, now
        self._note_loss(steps, loss)
        if self._first_ns is None:
            self._first_ns = duration_ns
            self._epoch_starts.clear()
            # Iterators left from building the model are torn down now: waiting for that later on, a pipeline
            # would fill its buffers, from which the first timed steps would then be fed.
            gc.collect()
            self._channel.send(PhaseStarted(name="warm-up"))
            self._last = self._clock()
            return
        self._steps += steps
        self._samples.append(samples)
        self._loss = loss
        if self._settle_until:
            self._settling_ns.append(duration_ns)
            self._settle(steps, now)
            return
        self._step_ns.append(duration_ns)
        self._elapsed_ns += duration_ns
        if self._warm:
            enough = self._steps >= self._min_steps and self._elapsed_ns >= self._min_ns
            if enough or self._elapsed_ns >= self._max_ns:
                self._close_block()
                self._await_orders()
        elif self._is_warm():
            self._finish_warm_up()
            self._await_orders()

    def _settle(self, steps: int, now: int) -> None:
        """Ask for one step more; the clock starts anew behind the last that began soon after a pause."""
        self._min_steps += steps
        if now > self._settle_until:
            self._settle_until = 0
            self._finish_device_work()
        self._last = self._clock()

    def _note_loss(self, steps: int, loss: Any) -> None:
        """Keep the loss, if there is one, each time the number of steps passes a power of two."""
        before, self._ever = self._ever, self._ever + steps
        if loss is not None and self._ever.bit_length() > before.bit_length():
            self._losses[self._ever] = loss

    def _is_warm(self) -> bool:
        seconds = self._elapsed_ns / _NS
        done = len(self._step_ns) >= self._warm_up_steps and seconds >= self._warm_up_s
        return (done and is_steady(self._step_ns)) or seconds >= LONGEST_WARM_UP_S

    def _finish_warm_up(self) -> None:
        self._finish_device_work()
        self._warm = True
        self._typical_ns = statistics.median(self._step_ns)
        assert self._first_ns is not None
        warm_up = WarmUp(
            first_step_ns=self._first_ns, step_ns=tuple(self._step_ns), losses=_numbers(self._losses)
        )
        self._channel.send(Warm(warm_up=warm_up))
        self._channel.send(PhaseStarted(name="measure"))

    def _close_block(self) -> None:
        self._finish_device_work()
        now = self._clock()
        self._step_ns[-1] += now - self._last
        longest = min(statistics.median(self._step_ns), self._typical_ns) + self._settle_ns
        step_ns = (*settled(self._settling_ns, self._step_ns, longest), *self._step_ns)
        steps, samples = self._progress()
        block = Block(
            steps=steps,
            samples=samples,
            duration_ns=sum(step_ns),
            step_ns=step_ns,
            settling_ns=tuple(self._settling_ns),
            epoch_starts=tuple(self._epoch_starts),
            loss=_number(self._loss),
            losses=_numbers(self._losses),
        )
        self._channel.send(Measured(block=block))

    def _progress(self) -> tuple[int, int]:
        """Steps and samples since the block began."""
        if self._counted is None:
            return self._steps, sum(int(samples) for samples in self._samples)
        (steps, samples), before = self._counted(), self._counted_before
        return steps - before[0], samples - before[1]

    def _await_orders(self) -> None:
        self._counted_before = self._counted() if self._counted else (0, 0)
        self._channel.send(Ready())
        order = self._channel.receive()
        if isinstance(order, Finish):
            raise Enough
        self._clear()
        self._min_steps, self._min_ns = order.min_steps, int(order.min_duration_s * _NS)
        self._max_ns = int(order.max_duration_s * _NS)
        self._last = self._clock()
        self._settle_ns = int(order.settle_s * _NS)
        if self._typical_ns < self._settle_ns:
            self._settle_until = self._last + self._settle_ns
        else:
            self._min_ns = max(self._min_ns, LONG_BLOCK * self._settle_ns)

    def end_of_data(self) -> None:
        """Keep what was measured when the data ended in the middle of a block.

        Raises `NoData` when that was still in the warm-up.
        """
        if self._first_ns is None:
            raise NoData("no-data", "The dataset gave no batch: there is nothing to train on.")
        if not self._warm:
            raise NoData(
                "data-ended",
                f"The data ended after {1 + len(self._step_ns)} steps, before steady state: give a"
                " dataset that can be iterated again, or a longer one.",
            )
        if self._step_ns:
            self._close_block()


class Logging:
    """Runs a few steps and times none."""

    def __init__(self, steps: int = LOGGED_STEPS) -> None:
        self._left = steps

    def begin_epoch(self) -> None: ...

    def end_epoch(self) -> None: ...

    def around_step(self) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def after_step(self, steps: int, samples: Any, loss: Any) -> None:
        self._left -= 1
        if self._left <= 0:
            raise Enough

    def end_of_data(self) -> None:
        """A few steps fewer tell as much."""


class Tracing:
    """After the warm-up, a few steps under TensorFlow's profiler, into ``folder``.

    Each step is marked with ``_r=1``, without which the profiler's own tools recognise no step.
    """

    def __init__(self, channel: Channel, folder: str, clock: Clock = time.perf_counter_ns) -> None:
        self._channel = channel
        self._folder = folder
        self._clock = clock
        self._before = WARM_UP_STEPS
        self._traced = 0
        self._started_ns: int | None = None

    def begin_epoch(self) -> None: ...

    def end_epoch(self) -> None: ...

    def around_step(self) -> contextlib.AbstractContextManager[Any]:
        if self._started_ns is None:
            return contextlib.nullcontext()
        import tensorflow as tf

        marker: contextlib.AbstractContextManager[Any] = tf.profiler.experimental.Trace(
            "tfaudit step", step_num=self._traced, _r=1
        )
        return marker

    def after_step(self, steps: int, samples: Any, loss: Any) -> None:
        if self._started_ns is None:
            self._before -= 1
            if self._before <= 0:
                self._start()
            return
        self._traced += 1
        if self._traced >= TRACED_STEPS or self._clock() - self._started_ns > LONGEST_TRACE_S * _NS:
            raise Enough

    def _start(self) -> None:
        import tensorflow as tf

        self._channel.send(PhaseStarted(name="trace"))
        options = tf.profiler.experimental.ProfilerOptions(
            host_tracer_level=2, python_tracer_level=0, device_tracer_level=1
        )
        tf.profiler.experimental.start(self._folder, options=options)
        self._started_ns = self._clock()

    def stop(self) -> None:
        """Write the trace. The profiler is stopped here, outside the step that ended the loop."""
        import tensorflow as tf

        if self._started_ns is not None:
            tf.profiler.experimental.stop()

    def end_of_data(self) -> None:
        if not self._traced:
            raise NoData("data-ended", "The data ended before a step could be traced.")


def settled(settling_ns: Sequence[int], step_ns: Sequence[int], longest_ns: float) -> list[int]:
    """What the steps right after a pause would have taken without it, by those that followed.

    Leaving them out would be wrong: where an epoch begins with a wait that ends a block, they are always the
    quick steps after it. Steps longer than ``longest_ns``, which a pause does not explain, count as they are,
    and for no others; so do all where no other followed.
    """
    others = [step for step in step_ns if step <= longest_ns]
    if not others:
        return list(settling_ns)
    usual = round(statistics.fmean(others))
    return [step if step > longest_ns else usual for step in settling_ns]


def is_steady(step_ns: Sequence[int]) -> bool:
    """Whether the last third of the steps is about as slow, by its median, as the third before."""
    third = max(1, len(step_ns) // 3)
    before, last = step_ns[-2 * third : -third], step_ns[-third:]
    return statistics.median(last) >= (1 - STILL_WARMING) * statistics.median(before or last)


def _numbers(losses: dict[int, Any]) -> dict[int, float | None]:
    return {step: _number(loss) for step, loss in losses.items()}


def _number(loss: Any) -> float | None:
    try:
        return None if loss is None else float(loss)
    except (TypeError, ValueError):
        return None

"""What the clock covers: warm-up, settling after a pause, blocks, and the losses noted on the way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tfaudit.recorders import Enough, NoData, Timing, is_steady
from tfaudit.records import Block, WarmUp
from tfaudit.session import Finish, Go, Measured, PhaseStarted, Warm

MS = 1_000_000


class FakeRun:
    """A runner that gives its orders one after another, and a clock that only the steps move."""

    def __init__(self, *orders: Go, **options: Any) -> None:
        self.now, self.syncs = 0, 0
        self.told: list[Any] = []
        self._orders = [*orders, Finish()]
        options = {"warm_up_steps": 2, "warm_up_s": 0.0, **options}
        self.timing = Timing(self, self._sync, clock=lambda: self.now, **options)  # type: ignore[arg-type]

    def send(self, message: Any) -> None:
        self.told.append(message)

    def receive(self) -> Any:
        self.now += 1000 * MS  # however long the pause
        return self._orders.pop(0)

    def _sync(self) -> None:
        self.syncs += 1

    def steps(self, *step_ms: float, loss: float | None = None) -> None:
        """Steps of eight samples that take so long, until the runner has enough."""
        for duration_ms in step_ms:
            self.now += round(duration_ms * MS)
            self.timing.after_step(1, 8, loss)

    def all_steps(self, step_ms: Iterable[float]) -> None:
        with pytest.raises(Enough):
            self.steps(*step_ms)

    @property
    def warm_up(self) -> WarmUp:
        return next(message.warm_up for message in self.told if isinstance(message, Warm))

    @property
    def blocks(self) -> list[Block]:
        return [message.block for message in self.told if isinstance(message, Measured)]


def in_ms(step_ns: Iterable[int]) -> list[float]:
    return [step / MS for step in step_ns]


def test_the_first_step_the_warm_up_and_a_block_are_told_apart() -> None:
    run = FakeRun(Go(min_steps=3))
    run.all_steps([900, 5, 5, 10, 11, 12])
    assert run.warm_up.first_step_ns == 900 * MS
    assert in_ms(run.warm_up.step_ns) == [5, 5]
    (block,) = run.blocks
    assert (in_ms(block.step_ns), block.steps, block.samples) == ([10, 11, 12], 3, 24)
    assert block.duration_ns == 33 * MS


def test_garbage_is_collected_before_the_warm_up_not_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the training thread waits after the warm-up, buffers fill that feed the first timed steps."""
    run = FakeRun(Go(min_steps=1))
    told_before: list[int] = []
    monkeypatch.setattr("gc.collect", lambda: told_before.append(len(run.told)))
    run.all_steps([900, 5, 5, 10])
    assert (told_before, type(run.told[0])) == ([0], PhaseStarted)


def test_a_pause_between_two_blocks_is_in_neither() -> None:
    run = FakeRun(Go(min_steps=1), Go(min_steps=2))
    run.all_steps([900, 5, 5, 10, 11, 12])
    assert [in_ms(block.step_ns) for block in run.blocks] == [[10], [11, 12]]


def test_a_block_ends_with_its_steps_and_its_time_or_with_the_longest_time() -> None:
    run = FakeRun(Go(min_steps=1, min_duration_s=0.025), Go(min_steps=100, max_duration_s=0.025))
    run.all_steps([900, 5, 5, *[10] * 6])
    assert [block.steps for block in run.blocks] == [3, 3]


def test_warm_up_takes_its_time_and_goes_on_while_steps_get_faster() -> None:
    run = FakeRun(Go(), warm_up_s=0.02)
    run.all_steps([900, 30, 20, 10, 10, 10])
    assert in_ms(run.warm_up.step_ns) == [30, 20, 10, 10]


@pytest.mark.parametrize(
    ("step_ms", "steady"),
    [
        ([10, 10, 10], True),
        ([30, 10, 10], True),  # the last third is as slow as the one before
        ([10, 10, 9], True),
        ([10, 10, 8.9], False),
        ([10, 10, 30], True),  # slower is no warming up
        ([10], True),
        ([50, 50, 10, 10, 10, 10], True),
    ],
)
def test_steps_are_steady_when_the_last_third_is_no_faster(step_ms: list[float], steady: bool) -> None:
    assert is_steady([round(step * MS) for step in step_ms]) is steady


def test_steps_that_begin_soon_after_a_pause_count_as_those_that_follow() -> None:
    """Steps of 10 ms, of which the three that begin within 35 ms are slower."""
    run = FakeRun(Go(min_steps=2, settle_s=0.035))
    run.all_steps([900, 10, 10, 14, 12, 11, 9, 10])
    (block,) = run.blocks
    assert in_ms(block.settling_ns) == [14, 12, 11]
    assert in_ms(block.step_ns) == [9.5, 9.5, 9.5, 9, 10]
    assert (block.steps, block.samples, block.duration_ns) == (5, 40, 47.5 * MS)


def test_a_stall_soon_after_a_pause_counts_as_it_is() -> None:
    """And one among the steps that follow does not count for others."""
    run = FakeRun(Go(min_steps=3, settle_s=0.035))
    run.all_steps([900, 10, 10, 12, 200, 10, 10, 150])
    (block,) = run.blocks
    assert in_ms(block.step_ns) == [10, 200, 10, 10, 150]


def test_waits_where_epochs_begin_are_weighed_as_often_as_they_come() -> None:
    """Epochs of 20 steps of 4 ms, the first of which waits for 200: each block ends with such a wait.

    The quick steps that follow one are those that come soon after a pause; left out, the rate would be less
    than half of what it is.
    """
    run = FakeRun(*[Go(min_duration_s=0.1, settle_s=0.06)] * 8)
    with pytest.raises(Enough):
        for number in range(10_000):
            if number % 20 == 0:
                run.timing.begin_epoch()
            run.steps(200 if number % 20 == 0 else 4)
    samples = sum(block.samples for block in run.blocks)
    seconds = sum(block.duration_ns for block in run.blocks) / 1e9
    assert samples / seconds == pytest.approx(20 * 8 / 0.276, rel=0.06)


def test_a_slow_step_alone_says_nothing_of_the_quick_ones_before_it() -> None:
    """Epochs of five steps of 16 ms, the first of which waits for 1500; the others come soon after a pause.

    The blocks begin and end with such a wait, seven for six epochs.
    """
    run = FakeRun(*[Go(min_duration_s=0.1, settle_s=0.06)] * 6, warm_up_steps=9)
    with pytest.raises(Enough):
        for number in range(10_000):
            run.steps(1500 if number % 5 == 0 else 16)
    samples = sum(block.samples for block in run.blocks)
    seconds = sum(block.duration_ns for block in run.blocks) / 1e9
    assert samples / seconds == pytest.approx((6 * 5 + 1) * 8 / (7 * 1.5 + 6 * 4 * 0.016))


def test_the_device_has_finished_before_the_clock_starts_again() -> None:
    run = FakeRun(Go(min_steps=2, settle_s=0.035))
    run.steps(900, 10, 10)
    before = run.syncs
    run.steps(14, 12)
    assert run.syncs == before
    run.steps(11)
    assert run.syncs == before + 1


def test_epochs_are_counted_from_the_first_step_on() -> None:
    run = FakeRun(Go(min_steps=2, settle_s=0.015))
    run.steps(900, 10, 10, 10)
    run.timing.begin_epoch()
    run.steps(10)
    run.timing.begin_epoch()
    run.all_steps([10, 10])
    assert run.blocks[0].epoch_starts == (1, 2)


def test_what_follows_the_last_step_of_an_epoch_counts_and_what_lies_between_epochs_does_not() -> None:
    """A callback takes 5 ms after each step of 10; an epoch is two steps, and 700 ms lie between epochs."""
    run = FakeRun(Go(min_steps=6))
    with pytest.raises(Enough):
        for _ in range(10):
            run.timing.begin_epoch()
            for _ in range(2):
                run.steps(10)
                run.now += 5 * MS
            run.timing.end_epoch()
            run.now += 700 * MS
    assert [in_ms(block.step_ns) for block in run.blocks] == [[15] * 6]


def test_long_steps_are_all_timed_in_longer_blocks() -> None:
    """Steps of 50 ms where 40 are given to settle: eight times 40 ms are seven steps."""
    run = FakeRun(Go(min_steps=1, settle_s=0.04))
    run.all_steps([900, 50, 50, *[50] * 7])
    assert [block.steps for block in run.blocks] == [7]


def test_the_loss_is_noted_at_powers_of_two_whether_timed_or_not() -> None:
    run = FakeRun(Go(min_steps=2, settle_s=0.015), Go(min_steps=10))
    with pytest.raises(Enough):
        for number in range(1, 100):
            run.steps(10, loss=float(number))
    assert run.warm_up.losses == {1: 1.0, 2: 2.0}
    assert [block.losses for block in run.blocks] == [{4: 4.0}, {8: 8.0, 16: 16.0}]


def test_steps_that_come_several_at_a_time_are_noted_where_they_pass_a_power_of_two() -> None:
    run = FakeRun(Go(min_steps=9))
    with pytest.raises(Enough):
        for number in range(100):
            run.now += 10 * MS
            run.timing.after_step(3, 24, float(number))
    assert list(run.warm_up.losses) == [3, 6, 9]
    assert [list(block.losses) for block in run.blocks] == [[18]]


def test_where_something_counts_it_is_asked_what_a_block_held() -> None:
    """Steps and samples, of which a call tells its steps at most."""
    counted = [(10, 80), (16, 125), (20, 200), (29, 260), (29, 260)]
    run = FakeRun(Go(min_steps=2), Go(min_steps=2), counted=lambda: counted.pop(0))
    run.all_steps([900, 5, 5, *[10] * 4])
    assert [(block.steps, block.samples) for block in run.blocks] == [(6, 45), (9, 60)]


def test_data_that_ends_in_a_block_keeps_it() -> None:
    run = FakeRun(Go(min_steps=100))
    run.steps(900, 10, 10, 10, 10)
    run.timing.end_of_data()
    assert [block.steps for block in run.blocks] == [2]


@pytest.mark.parametrize(("steps", "kind"), [((), "no-data"), ((900, 10), "data-ended")])
def test_data_that_ends_before_a_block_says_so(steps: tuple[float, ...], kind: str) -> None:
    run = FakeRun(Go())
    run.steps(*steps)
    with pytest.raises(NoData) as raised:
        run.timing.end_of_data()
    assert raised.value.kind == kind

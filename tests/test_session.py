"""The conversation between runner and child, over a real pair of sockets."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from checks.builders import block

from tfaudit.records import (
    Block,
    Device,
    Placement,
    Program,
    Record,
    Resolved,
    Stage,
    VariantEnvironment,
    WarmUp,
)
from tfaudit.session import (
    Channel,
    Done,
    Failed,
    Finish,
    Found,
    Go,
    Measured,
    PhaseStarted,
    Ready,
    Warm,
    child_end,
    pair,
    runner_end,
)


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    """The runner's end and the child's."""
    mine, theirs = pair()
    runner, child = runner_end(mine.detach()), child_end(theirs.detach())
    yield runner, child
    runner.close()
    child.close()


FROM_CHILD = [
    PhaseStarted(name="warm-up"),
    Found(),
    Found(
        program=Program(form="script", pipeline=(Stage(op="map", num_parallel_calls=-1),)),
        environment=VariantEnvironment(
            versions={"tensorflow": "2.21.0"}, devices=(Device(name="/physical_device:CPU:0", kind="CPU"),)
        ),
        resolved=Resolved(jit_compile=True),
        placement=Placement(ops={"CPU": {"MatMul": 2}}),
        train_ops={"MatMul": 2},
        traces=1,
        peak_host_bytes=1000,
    ),
    Warm(warm_up=WarmUp(first_step_ns=5, step_ns=(1, 2), losses={1: 0.5})),
    Measured(block=block(100.0)),
    Ready(),
    Failed(kind="raised", message="Training raised ValueError.", detail="Traceback\n…"),
    Done(),
]


@pytest.mark.parametrize("message", FROM_CHILD, ids=lambda message: type(message).__name__)
def test_what_the_child_says_arrives_as_it_was_sent(ends: tuple[Channel, Channel], message: Record) -> None:
    runner, child = ends
    child.send(message)
    assert runner.receive() == message


@pytest.mark.parametrize("order", [Go(), Go(min_steps=8, min_duration_s=1.5), Finish()])
def test_what_the_runner_orders_arrives_as_it_was_sent(ends: tuple[Channel, Channel], order: Record) -> None:
    runner, child = ends
    runner.send(order)
    assert child.receive() == order


def test_messages_keep_their_order_and_their_bounds(ends: tuple[Channel, Channel]) -> None:
    runner, child = ends
    sent = [PhaseStarted(name=name) for name in ("load", "build", "warm-up")]
    for message in sent:
        child.send(message)
    assert [runner.receive() for _ in sent] == sent
    assert not runner.poll(0)


def test_a_loss_that_is_no_number_arrives_as_none(ends: tuple[Channel, Channel]) -> None:
    runner, child = ends
    child.send(Measured(block=block(100.0, loss=float("nan"))))
    message = runner.receive()
    assert isinstance(message.block, Block) and message.block.loss is None


def test_what_was_sent_before_the_child_ended_is_still_heard(ends: tuple[Channel, Channel]) -> None:
    runner, child = ends
    child.send(Done())
    child.close()
    assert runner.receive() == Done()
    with pytest.raises(EOFError):
        runner.receive()


def test_talking_to_an_end_that_is_gone_raises(ends: tuple[Channel, Channel]) -> None:
    runner, child = ends
    child.close()
    with pytest.raises(OSError):
        runner.send(Go())


def test_neither_end_takes_what_only_the_other_says(ends: tuple[Channel, Channel]) -> None:
    runner, child = ends
    child.send(Go())
    with pytest.raises(msgspec.ValidationError):
        runner.receive()
    runner.send(Done())
    with pytest.raises(msgspec.ValidationError):
        child.receive()

"""All that a check may know, and nothing else. ``evidence.json`` holds it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from . import numerics
from .records import (
    Answer,
    Block,
    Device,
    Environment,
    Interval,
    Numerics,
    Plan,
    Program,
    Record,
    Settings,
    Source,
    Stored,
    Target,
    VariantResult,
)
from .statistics import paired_ratio_interval, rate_interval, ratio_interval
from .trace.summary import TraceEvidence as TraceEvidence

#: A variant that ended badly still counts when it was measured in so many blocks before.
FEWEST_BLOCKS = 5

#: The kind of target that is no program but a trace.
TRACE_ALONE = "trace"

#: Facts other than variants that a check may name in its ``needs``.
FACTS = ("program", "source", "trace", "price", "machine", "storage")


class Evidence(Record, frozen=True):
    """What a run gathered, and what people said besides."""

    plan: Plan
    variants: tuple[VariantResult, ...]
    machine: Environment
    program: Program | None = None
    trace: TraceEvidence | None = None
    usd_per_hour: float | None = None
    storage: tuple[Stored, ...] = ()
    answers: tuple[Answer, ...] = ()

    def only(self, needs: Iterable[str]) -> Evidence:
        """The same without the variants and facts that are not named, and without answers."""
        wanted = set(needs)
        source = self.plan.source if "source" in wanted else Source()
        return replace(
            self,
            plan=replace(self.plan, source=source, usd_per_hour=None, storage=()),
            variants=tuple(result for result in self.variants if result.id in wanted),
            machine=self.machine if "machine" in wanted else NO_MACHINE,
            program=self.program if "program" in wanted else None,
            trace=self.trace if "trace" in wanted else None,
            usd_per_hour=self.usd_per_hour if "price" in wanted else None,
            storage=self.storage if "storage" in wanted else (),
            answers=(),
        )

    def variant(self, identifier: str) -> VariantResult | None:
        """A variant's result; None when it is no part of this evidence."""
        return next((result for result in self.variants if result.id == identifier), None)

    def why_missing(self, need: str) -> str:
        """Why a needed variant or fact is not there, in a sentence; empty when it is."""
        if need == "trace":
            profiled = self.variant("profiled")
            if self.trace is None:
                return "The profiled variant was not run."
            failure = profiled.failure if profiled else None
            return failure.message if self.trace.problem and failure else self.trace.problem
        if need == "price":
            return "" if self.usd_per_hour is not None else NO_PRICE
        if need == "program":
            return "" if self.program else f"The job is not known. {self.why_missing('baseline')}".strip()
        if need in FACTS:
            return ""
        result = self.variant(need)
        if result is None:
            return f"The variant {need} was not run: this audit was not asked for it."
        if result.status == "measured" or len(result.blocks) >= FEWEST_BLOCKS:
            return ""
        return result.failure.message if result.failure else f"The variant {need} gave nothing."

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before its end."""
        return any(
            result.failure is not None and result.failure.kind == "interrupted" for result in self.variants
        )

    @property
    def source(self) -> Source:
        return self.plan.source

    def rates(self, identifier: str) -> list[float]:
        """Samples per second of each block of a variant; empty when it was not measured."""
        result = self.variant(identifier)
        return block_rates(result.blocks) if result else []

    def samples_per_s(self, identifier: str) -> Interval | None:
        """All samples of a variant's blocks over all their time, with its interval."""
        result = self.variant(identifier)
        return samples_per_s(result) if result else None

    def samples_per_usd(self, identifier: str) -> Interval | None:
        """Samples per second × 3600 ÷ price per hour; None without a price."""
        rate = self.samples_per_s(identifier)
        if rate is None or self.usd_per_hour is None:
            return None
        return scaled(rate, 3600 / self.usd_per_hour)

    def ratio(self, identifier: str, to: str) -> Interval | None:
        """Samples per second of one variant over another's; None unless both were measured well enough."""
        if self.why_missing(identifier) or self.why_missing(to):
            return None
        both = (self.variant(identifier), self.variant(to))
        if any(result is None or result.alone for result in both):
            return ratio_interval(self.rates(identifier), self.rates(to))
        return paired_ratio_interval(*(timed_blocks(result.blocks) for result in both if result))

    def numerics(self, identifier: str) -> Numerics | None:
        """A variant's loss beside the baseline's; None unless both noted losses."""
        result, baseline = self.variant(identifier), self.variant("baseline")
        return numerics.compare(result, baseline) if result and baseline else None

    @property
    def accelerators(self) -> tuple[str, ...]:
        """Names of the devices that are no CPU."""
        return tuple(
            device.description or device.name for device in self.machine.devices if device.is_accelerator
        )


#: What a check is handed that did not ask for the machine.
NO_MACHINE = Environment(machine="", os="", cpu="", cores=0, memory_bytes=0, devices=(), versions={})


def of_trace(name: str, trace: TraceEvidence) -> Evidence:
    """Evidence of a trace without a run: the accelerators are its device planes."""
    planes = trace.summary.devices if trace.summary else ()
    devices = tuple(
        Device(
            name=plane.plane,
            kind=plane.plane.rpartition("/device:")[2].partition(":")[0],
            description=plane.model or "",
            compute_capability=plane.compute_capability,
        )
        for plane in planes
    )
    machine = replace(NO_MACHINE, devices=devices)
    target = Target(kind=TRACE_ALONE, path=name, name=name)
    return Evidence(
        plan=Plan(target, "", (), (), Settings(), Source(), machine),
        variants=(),
        machine=machine,
        trace=trace,
    )


NO_ACCELERATOR = "This machine has no accelerator."

NO_PRICE = "No price is known: give what the machine costs per hour with --price, e.g. --price 1.006."


def samples_per_s(result: VariantResult) -> Interval | None:
    """All samples of a result's blocks over all their time, with its interval; None without blocks."""
    return rate_interval(timed_blocks(result.blocks))


def timed_blocks(blocks: Iterable[Block]) -> dict[tuple[int, int], tuple[float, float]]:
    """Samples and seconds of each block, by launch and round."""
    return {
        (block.launch, block.round): (block.samples, block.duration_ns / 1e9)
        for block in blocks
        if block.duration_ns
    }


def block_rates(blocks: Iterable[Block]) -> list[float]:
    """Samples per second of each block."""
    return [block.samples / block.duration_ns * 1e9 for block in blocks if block.duration_ns]


def scaled(interval: Interval, factor: float) -> Interval:
    """An interval in another unit."""
    return Interval(median=interval.median * factor, low=interval.low * factor, high=interval.high * factor)

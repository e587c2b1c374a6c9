"""The variants: which there are, in which order they run, and what each changes."""

from __future__ import annotations

from typing import Any

import pytest

from tfaudit.errors import UsageError
from tfaudit.feeding import before_prefetch, trailing_prefetch
from tfaudit.job import VariedJob
from tfaudit.variants import VARIANTS, plan

JOB = VariedJob(model="model", dataset="dataset")


def test_the_variants_run_in_this_order() -> None:
    assert list(VARIANTS) == [
        "baseline",
        "cached-input",
        "constant-batch",
        "parallel-input",
        "source-cached",
        "input-only",
        "source-cached-input-only",
        "batch-x2",
        "batch-x4",
        "bfloat16",
        "float16",
        "xla",
        "no-xla",
        "placement",
        "weighed",
        "profiled",
    ]


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_has_a_title_of_its_own(name: str) -> None:
    variant = VARIANTS[name]
    assert variant.id == name
    assert variant.title and not variant.title.endswith(".")
    assert [other.id for other in VARIANTS.values() if other.title == variant.title] == [name]


def test_what_the_variants_are_for_that_are_not_timed() -> None:
    purposes = {name: variant.purpose for name, variant in VARIANTS.items() if variant.purpose != "time"}
    assert purposes == {"placement": "log", "weighed": "weigh", "profiled": "trace"}


def test_the_dtype_policies_are_set_before_the_program_runs() -> None:
    policies = {name: variant.dtype_policy for name, variant in VARIANTS.items() if variant.dtype_policy}
    assert policies == {"bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}


@pytest.mark.parametrize(
    ("wanted", "planned"),
    [
        ((), ("baseline",)),
        (("xla",), ("baseline", "xla")),
        (("no-xla", "xla", "baseline", "xla"), ("baseline", "xla", "no-xla")),
        (tuple(VARIANTS), tuple(VARIANTS)),
    ],
)
def test_the_baseline_always_comes_first(wanted: tuple[str, ...], planned: tuple[str, ...]) -> None:
    assert plan(wanted) == planned


@pytest.mark.parametrize("name", ["cached_input", "fast", ""])
def test_a_name_that_is_no_variant_gives_one_sentence(name: str) -> None:
    with pytest.raises(UsageError) as raised:
        plan(["xla", name])
    assert str(raised.value) == f"There is no variant {name!r}: choose from {', '.join(VARIANTS)}."


@pytest.mark.parametrize("name", ["baseline", "bfloat16", "float16", "placement", "profiled"])
def test_these_leave_the_job_as_it_is(name: str) -> None:
    assert VARIANTS[name].change(JOB) == JOB


def test_compilation_is_set_explicitly() -> None:
    assert VARIANTS["xla"].change(JOB).jit_compile is True
    assert VARIANTS["no-xla"].change(JOB).jit_compile is False
    assert JOB.jit_compile is None


def test_input_alone_trains_nothing() -> None:
    job = VARIANTS["input-only"].change(JOB)
    assert (job.trains, job.dataset) == (False, "dataset")


class MapDataset:
    """Stands in for a tf.data.Dataset: remembers the calls made on it."""

    def __init__(self, *calls: str) -> None:
        self.calls = calls

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        kind = {"prefetch": _PrefetchDataset, "with_options": _OptionsDataset}.get(name, MapDataset)

        def call(*arguments: Any) -> MapDataset:
            made = kind(*self.calls, f"{name}({', '.join(map(str, arguments))})")
            made._input_dataset = self
            made._buffer_size = arguments[0] if arguments else None
            return made

        return call


class _PrefetchDataset(MapDataset): ...


class _OptionsDataset(MapDataset):
    def options(self) -> str:
        return "options"


@pytest.mark.parametrize(
    ("dataset", "buffer"),
    [
        (MapDataset("map"), None),
        (MapDataset("map").prefetch(3), 3),
        (MapDataset("map").prefetch(3).with_options("options"), 3),
        (MapDataset("map").prefetch(-1).with_options("one").with_options("other"), -1),
        (MapDataset("map").prefetch(3).map("f"), None),
    ],
)
def test_a_trailing_prefetch_is_seen_beneath_options(dataset: Any, buffer: int | None) -> None:
    assert trailing_prefetch(dataset) == buffer


@pytest.mark.parametrize(
    ("dataset", "changed"),
    [
        (MapDataset("map"), ("map", "repeat()")),
        (MapDataset("map").prefetch(3), ("map", "repeat()", "prefetch(3)")),
        (
            MapDataset("map").prefetch(3).with_options("options"),
            ("map", "repeat()", "prefetch(3)", "with_options(options)"),
        ),
        (MapDataset("map").prefetch(3).map("f"), ("map", "prefetch(3)", "map(f)", "repeat()")),
    ],
)
def test_a_trailing_prefetch_stays_the_last_stage(dataset: MapDataset, changed: tuple[str, ...]) -> None:
    assert before_prefetch(dataset, lambda data: data.repeat()).calls == changed

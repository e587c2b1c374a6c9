"""Which of a pipeline's maps could be done elsewhere or otherwise: functions of records alone."""

from __future__ import annotations

from ..records import Program, Stage

#: Stages that keep what comes before them.
KEEPERS = frozenset({"cache", "snapshot"})

#: Ops that cost about nothing beside fetching an element: a map of these alone is not worth a change.
LIGHT = frozenset(
    {
        "Add", "AddV2", "Assert", "BroadcastTo", "Cast", "Const", "DivNoNan", "EnsureShape", "Equal",
        "ExpandDims", "Identity", "IdentityN", "Maximum", "Minimum", "Mul", "Neg", "NoOp", "OneHot", "Pack",
        "PartitionedCall", "Placeholder", "Rank", "ReadVariableOp", "RealDiv", "Reshape", "Rsqrt", "Shape",
        "Size", "Sqrt", "Squeeze", "StatefulPartitionedCall", "StridedSlice", "Sub",
    }
)  # fmt: skip

#: Ops that take what is stored apart. Random numbers are drawn after them, since they take none, so that a
#: function that does both can be split.
DECODING = frozenset(
    {
        "DecodeBmp", "DecodeCSV", "DecodeGif", "DecodeImage", "DecodeJpeg", "DecodePng", "DecodeRaw",
        "DecodeWav", "ParseExampleV2", "ParseSequenceExampleV2", "ParseSingleExample", "ReadFile",
    }
)  # fmt: skip

#: A map that shrinks its elements further than this is better done before they are copied to a device.
MOST_COPIED_RATIO = 2.0

#: Stages through which whatever follows can be done elsewhere all the same: they change no element.
PASSING = frozenset({"batch", "prefetch", "repeat", "shuffle", "take", "with_options"})


def maps(program: Program) -> list[Stage]:
    """The maps of which it is known what they do, those within other functions included."""
    return [stage for stage in program.pipeline if stage.op == "map" and stage.work is not None]


def unread(program: Program) -> list[Stage]:
    """Maps of which it is not known what they do."""
    return [
        stage
        for stage in program.pipeline
        if stage.op == "map" and stage.work is None and not KEEPERS.intersection(stage.before)
    ]


def worked(program: Program) -> list[Stage]:
    """The maps that do more than a little for every element in every epoch."""
    return [
        stage
        for stage in maps(program)
        if not KEEPERS.intersection(stage.before) and stage.work and not LIGHT.issuperset(stage.work.ops)
        if stage.is_own
    ]


def preparable(program: Program) -> list[Stage]:
    """Maps whose result, or that of their decoding, is the same in every epoch and not kept yet."""
    return [
        stage
        for stage in worked(program)
        if stage.work
        and not stage.after_varying
        and (stage.work.is_deterministic or (must_split(stage) and not stage.work.stateful))
    ]


def must_split(stage: Stage) -> bool:
    """Whether a map decodes as well as drawing random numbers."""
    return stage.work is not None and bool(stage.work.random) and not DECODING.isdisjoint(stage.work.ops)


def movable(program: Program) -> list[Stage]:
    """Maps at the pipeline's end, all of whose ops an accelerator has kernels for, in batches as well.

    Before ``batch`` the shape must be static, so that whole batches can be treated alike.
    """
    found: list[Stage] = []
    for stage in reversed(program.pipeline):
        if stage.inside or stage.op in PASSING:
            continue
        work = stage.work
        if stage.op != "map" or work is None or work.not_on_accelerator is None or work.not_on_accelerator:
            break
        if "batch" in stage.before and work.bytes_in is None:
            break
        if work.bytes_in and work.bytes_out and work.bytes_in > MOST_COPIED_RATIO * work.bytes_out:
            break
        found.insert(0, stage)
    heavy = worked(program)
    return [stage for stage in found if stage in heavy]


def compilable(program: Program) -> list[Stage]:
    """Maps that XLA could compile and does not yet: it has all kernels, and the shapes are known."""
    return [
        stage
        for stage in worked(program)
        if stage.work
        and stage.work.not_in_xla == ()
        and stage.work.bytes_in is not None
        and not stage.work.compiled
    ]

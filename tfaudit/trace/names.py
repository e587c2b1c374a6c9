"""What names mean: the one table of name patterns by which device and host events are told apart.

A name is looked up once, however many events carry it. The first pattern that matches decides.
Patterns are lower case: names are lowered before they are searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import lru_cache

import numpy as np
import numpy.typing as npt


class Work(IntEnum):
    """What a device event does."""

    KERNEL = 0
    COLLECTIVE = 1
    H2D = 2
    D2H = 3
    D2D = 4
    COPY = 5  # a copy whose direction the name does not tell
    BLIT = 6  # a ROCm copy kernel: its direction is that of the host call that launched it


class Role(IntEnum):
    """What a host event tells about a device that idles meanwhile."""

    IGNORED = 0  # allocations, thread pool bookkeeping, the Python tracer
    PLAIN = 1  # nothing, unless it carries a correlation id
    INPUT = 2  # somebody waits for the next batch
    PRODUCE = 3  # the input pipeline makes one
    COMPILE = 4
    SYNC = 5  # the host waits for the device, or copies synchronously
    LAUNCH = 6  # a call of the driver that puts work on the device
    EXECUTE = 7  # the executor runs an op
    OP = 8  # ... and this is the op


# CUDA's collector writes MemcpyH2D, TF 1 MEMCPYHtoD, nvprof [CUDA memcpy HtoD], ROCm
# CopyHostToDevice; MemcpyP2P goes from one device to another.
_COPY = r"^(?:\[?cuda )?memcpy[ _]?"
_ROCM_COPY = r"^(?:hip)?(?:mem)?copy"

WORK: tuple[tuple[Work, str], ...] = (
    (Work.H2D, rf"{_COPY}h(?:ost)?(?:2|to)d|{_ROCM_COPY}hosttodevice"),
    (Work.D2H, rf"{_COPY}d(?:evice)?(?:2|to)h|{_ROCM_COPY}devicetohost"),
    (Work.D2D, rf"{_COPY}(?:d(?:evice)?(?:2|to)d|p(?:2|to)p)|{_ROCM_COPY}devicetodevice"),
    (Work.COPY, rf"{_COPY}(?:other|h(?:2|to)h|d(?:2|to)a|a(?:2|to)[ahd]|h(?:2|to)a)|^memcpy$"),
    (Work.BLIT, r"^__amd_rocclr_copy(?:buffer|image)"),
    (
        Work.COLLECTIVE,
        r"nccl|rccl|all[-_]?reduce|all[-_]?gather|reduce[-_]?scatter|all[-_]?to[-_]?all"
        r"|collective[-_]?(?:permute|broadcast)|cross_device_reduce",
    ),
)

# The direction of a BLIT, from the correlated call (hipMemcpyHtoDAsync, hipMemcpyDtoH, ...).
CALL_DIRECTION: tuple[tuple[Work, str], ...] = (
    (Work.H2D, r"memcpy_?h(?:2|to)d"),
    (Work.D2H, r"memcpy_?d(?:2|to)h"),
    (Work.D2D, r"memcpy_?(?:d(?:2|to)d|peer|p(?:2|to)p)"),
)

ROLES: tuple[tuple[Role, str], ...] = (
    # IteratorGetNext and its variants as kernels (IteratorGetNextOp::DoCompute), as ops
    # (node:IteratorGetNext) and as eager calls; the queues and staging areas of TF 1; the Python
    # tracer's view of iterators and data loaders.
    (
        Role.INPUT,
        r"^(?:eager\w*: ?)?(?:multidevice)?iteratorgetnext\w*(?:op::docompute|:\w+)?$"
        r"|^[^\s:$]+:(?:multidevice)?iteratorgetnext\w*$"
        r"|^[^\s:$]*:(?:\w*queuedequeue\w*|unstage|infeeddequeue\w*)$"
        r"|^\$\S*(?:iterator|data_?loader|dataset|grain)\S*\.py:\d+ (?:__next__|_?next\w*|get_next)$",
    ),
    (
        Role.PRODUCE,
        r"^iterator::|^(?:prefetch|parallelmap|mapandbatch|parallelinterleave|parallelbatch"
        r"|batch|map|shuffle)(?:produce|consume)|instantiatedcapturedfunction::"
        r"|^[^\s:$]*:(?:eager)?pyfunc\w*$|generatordataset",
    ),
    (Role.COMPILE, r"^[^\s:$]+:_?xla\w*compile\w*$"),
    (Role.OP, r"^[^\s:$]+:_?[a-z]\w*$"),
    (
        Role.COMPILE,
        r"xlacompil|compile(?!d|_loss)|compilation|autotun|algorithmpicker|hlopass|runhlopass"
        r"|ptxas|nvlink|llvm|triton\w*emit|cumodule(?:load|get)|hipmodule(?:load|get)|culink"
        r"|cudnnfind|grappler|optimizegraph|rungraphoptimization"
        r"|instantiate(?!dcapturedfunction)|func_graph_from_py_func",
    ),
    (
        Role.SYNC,
        r"^(?:cu|cuda|hip)(?:stream|ctx|event|device)synchronize"
        r"|^(?:cu|cuda|hip)memcpy(?:dtoh|htod|dtod|peer|2d|3d|withstream)?(?:_v\d)?$"
        r"|tensorhandle::resolve|tfe_tensorhandleresolve|tfe_tensorhandlecopytodevice"
        r"|toliteral|copytohost|np\.asarray\(jax|block(?:host)?until(?:done|ready)"
        r"|transferliteralfrom|awaitbufferready",
    ),
    (
        Role.LAUNCH,
        r"^(?:cu|cuda|hip)(?:ext)?(?:module)?(?:cooperative)?(?:launch|memcpy|memset|graphlaunch)"
        r"|^hipextmodulelaunch|^hipextlaunch",
    ),
    (
        Role.IGNORED,
        r"^\$|^memory(?:de)?allocation$|^threadpoollistener::|^executorpropagateoutputs"
        r"|^tfe_deletetensorhandle|^executordonecallback|^schedule|^wait for donation|^recordusage",
    ),
    (
        Role.EXECUTE,
        # not EagerExecute and its kin, which last as long as the function that they wait for
        r"^executorstate::process|^pjitfunction|loadedexecutable::execute|thunkexecutor"
        r"|executethunks|gpuexecutable::execute",
    ),
)

# Types in the names of kernels. 16-bit: CUDA spells half, fp16, f16, h884, hgemm, s16816 (16-bit
# inputs on tensor cores), nvjet_hsh and nvjet_tst; Tensile HHS and BBS; bf16 and bfloat16 anywhere.
# XProf 2.24 knows only "half" and "fp16".
SIXTEEN_BIT = (
    r"b?f(?:p)?16(?![0-9])|bfloat16|half(?![a-z])|hgemm|hmma|[hs]884|h1688|[hs]16816(?!gemm_tf32)"
    r"|s1688(?!.*(?:tf32|f32f32))|nvjet_[ht]|cijk_\w+?_(?:h|b)(?:[hbs]{1,2})?_|_bf16"
)
OTHER_TYPE = (
    r"tf32|fp?32|fp?64|float|double|sgemm|scudnn|int8|int32|int64|cijk_\w+?_(?:s|d)[bsd]?_"
    r"|nvjet_[sdq]|fp8|e4m3|e5m2|long|unsigned"
)
# Tensor cores and AMD's matrix cores: MMA shapes in cuBLAS, cuDNN and CUTLASS names, Tensile's MI.
TENSOR_CORE = (
    r"[hsi](?:884|1688|16816|16832)|tensorop|[hiq]mma|xmma_(?!.*simt)|wgmma|gmma|nvjet_"
    r"|tensor_?core|_mi\d+x\d+|mfma|wmma"
)
# The last: XLA's copies, whose whole instruction is the name on a TPU.
LAYOUT = r"transpose|swapdim|nchwtonhwc|nhwctonchw|nhwc2nchw|nchw2nhwc|^%?copy(-start|-done)?(\.\d+)?( |$)"


@lru_cache(maxsize=1)
def _compiled() -> dict[str, list[tuple[int, re.Pattern[str]]]]:
    tables = {"work": WORK, "roles": ROLES, "calls": CALL_DIRECTION}
    return {
        table: [(int(kind), re.compile(pattern)) for kind, pattern in rows] for table, rows in tables.items()
    }


# Names are as long as C++ templates make them; what they say about types sits well before this.
_LONGEST = 2000


def _lowered(names: Iterable[str]) -> Iterator[str]:
    return (name[:_LONGEST].lower() for name in names)


def _classify(table: str, names: Iterable[str], default: int) -> npt.NDArray[np.int8]:
    rows = _compiled()[table]
    return np.array(
        [next((kind for kind, pattern in rows if pattern.search(name)), default) for name in _lowered(names)],
        dtype=np.int8,
    )


def work_of(names: Iterable[str]) -> npt.NDArray[np.int8]:
    """Return the `Work` of each device event name."""
    return _classify("work", names, Work.KERNEL)


def role_of(names: Iterable[str]) -> npt.NDArray[np.int8]:
    """Return the `Role` of each host event name."""
    return _classify("roles", names, Role.PLAIN)


def direction_of(calls: Iterable[str]) -> npt.NDArray[np.int8]:
    """Return H2D, D2H, D2D or COPY for the name of each host call."""
    return _classify("calls", calls, Work.COPY)


def matches(pattern: str, names: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Say of each name whether ``pattern`` occurs in it, whatever its case."""
    search = re.compile(pattern).search
    return np.array([search(name) is not None for name in _lowered(names)], dtype=bool)

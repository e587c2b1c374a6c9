"""What ran on a device."""

from collections.abc import Callable

import pytest
from xspaces import gpu, host

from tfaudit.trace import names
from tfaudit.trace.summary import TraceSummary

Summarise = Callable[..., TraceSummary]


def test_top_ops_sum_by_name_and_are_sorted_by_time(summary: Summarise) -> None:
    plane = gpu().event("Stream #1", "small", 0, 10).event("Stream #1", "large", 10, 50)
    plane.event("Stream #1", "small", 60, 20)
    ops = summary(plane).devices[0].top_ops
    assert [(op.name, op.count, op.time_ms) for op in ops] == [
        ("large", 1, pytest.approx(0.050)),
        ("small", 2, pytest.approx(0.030)),
    ]
    assert ops[0].share_fraction == pytest.approx(50 / 80)


def test_the_op_named_is_the_one_behind_most_of_the_time(summary: Summarise) -> None:
    plane = gpu().event("Stream #1", "k", 0, 10, tf_op="a:A").event("Stream #1", "k", 10, 30, tf_op="b:B")
    assert summary(plane).devices[0].top_ops[0].op == "b:B"


def test_jax_names_the_op_by_hlo(summary: Summarise) -> None:
    plane = gpu().event("Stream #1", "k", 0, 10, tf_op="XlaModule:", hlo_op="fusion.3")
    assert summary(plane).devices[0].top_ops[0].op == "fusion.3"


def test_nested_ops_of_a_tpu_have_self_time(summary: Summarise) -> None:
    plane = gpu()
    plane.name = "/device:TPU:0"
    plane.event("XLA Ops", "while", 0, 100).event("XLA Ops", "fusion", 10, 70)
    plane.describe("fusion", hlo_category="loop fusion")
    fusion, loop = summary(plane).devices[0].top_ops
    assert (fusion.time_ms, fusion.op) == (pytest.approx(0.070), "loop fusion")
    assert loop.time_ms == pytest.approx(0.030)


@pytest.mark.parametrize(
    ("name", "sixteen_bit", "tensor_core"),
    [
        ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", True, True),
        ("turing_h1688gemm_128x128_nn", True, True),
        ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn", True, True),
        ("sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32", True, True),
        ("cutlass::Kernel<cutlass_80_tensorop_bf16_s16816gemm_relu>", True, True),
        ("nvjet_hsh_128x256_64x4_2x1_v_bz_TNT", True, True),
        ("nvjet_tst_128x256_64x4_2x1_v_bz_TNT", True, True),
        ("Cijk_Ailk_Bljk_BBS_BH_MT128x32x64_MI16x16x16x1_SN", True, True),
        ("Cijk_Ailk_Bljk_HHS_BH_MT128x32x64_SN", True, False),
        ("void Eigen::internal::EigenMetaKernel<Eigen::half>", True, False),
        ("fusion_bfloat16_add", True, False),
        ("volta_sgemm_128x64_nn", False, False),
        ("Cijk_Ailk_Bljk_SB_MT128x128x16_SN", False, False),
        ("ampere_s1688gemm_tf32_128x128_nn", False, True),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_simt", False, False),
        ("void bn_fw_tr_1C11_kernel_NCHW<float, float>", False, False),
        ("wrapped_broadcast.kd", None, False),
    ],
)
def test_kernel_names_tell_number_type_and_matrix_units(
    summary: Summarise, name: str, sixteen_bit: bool | None, tensor_core: bool
) -> None:
    (device,) = summary(gpu().event("Stream #1", name, 0, 10)).devices
    (op,) = device.top_ops
    assert (op.sixteen_bit, op.tensor_core) == (sixteen_bit, tensor_core)
    assert device.precision.sixteen_bit_fraction == float(bool(sixteen_bit))
    assert device.precision.untold_fraction == float(sixteen_bit is None)


def test_small_kernels_are_those_under_20_us(summary: Summarise) -> None:
    plane = gpu().event("Stream #1", "k", 0, 19).event("Stream #1", "k", 30, 20)
    plane.event("Stream #1", "MemcpyH2D", 60, 1)
    (device,) = summary(plane).devices
    assert (device.small_kernel_count, device.small_kernel_fraction) == (1, 0.5)
    assert device.small_kernel_time_fraction == pytest.approx(19 / 39)


@pytest.mark.parametrize(
    "name",
    [
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "ncclDevKernel_ReduceScatter_Sum_bf16",
        "rcclGenericKernel",
        "%all-reduce.1 = f32[1024]{0} all-reduce(f32[1024] %p)",
        "all-gather-start",
        "collective-permute",
    ],
)
def test_collectives_are_told_by_name(summary: Summarise, name: str) -> None:
    (device,) = summary(gpu().event("Stream #1", name, 0, 10)).devices
    assert device.collectives.count == 1
    assert device.kernel_busy_ms == pytest.approx(0.010)


def test_collectives_overlapped_by_compute_are_hidden(summary: Summarise) -> None:
    plane = gpu().event("Stream #1", "k", 0, 30).event("Stream #2", "ncclKernel_AllReduce", 20, 40)
    collectives = summary(plane).devices[0].collectives
    assert collectives.exposed_ms == pytest.approx(0.030)
    assert collectives.overlapped_fraction == pytest.approx(0.25)


def test_collectives_bunched_at_the_end_of_the_step_are_told(summary: Summarise) -> None:
    """Of 40 us, 10 us lie in the first half of the step and 30 us in its last quarter."""
    plane = gpu().event("Stream #1", "ncclA", 20, 10).event("Stream #1", "ncclA", 160, 30)
    cpu = host().event("python", "train", 0, 200, step_num=1, _r=1)
    assert summary(plane, cpu).devices[0].collectives.tail_fraction == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("void nchwToNhwcKernel<float>", True),
        ("%copy-done.2 = f32[8]{0} copy-done(f32[8] %copy-start)", True),
        ("copy.1", True),
        ("copy_fusion", False),
    ],
)
def test_layout_changes_are_flagged(summary: Summarise, name: str, changes: bool) -> None:
    plane = gpu().event("Stream #1", name, 0, 10)
    assert summary(plane).devices[0].top_ops[0].changes_layout == changes


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("$training.py:12 train_step", names.Role.IGNORED),
        ("MemoryAllocation", names.Role.IGNORED),
        ("ThreadpoolListener::StartRegion", names.Role.IGNORED),
        ("StatefulPartitionedCall/gradient_tape/compile_loss/mse/Mul:Mul", names.Role.OP),
        ("Iterator::Root::Prefetch", names.Role.PRODUCE),
        ("$iterator_ops.py:819 __next__", names.Role.INPUT),
        ("void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator>", names.Role.PLAIN),
    ],
)
def test_roles_of_host_events(name: str, role: names.Role) -> None:
    assert names.role_of([name]).tolist() == [role]

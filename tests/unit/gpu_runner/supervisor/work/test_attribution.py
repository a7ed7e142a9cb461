"""Whose work a place in a process is, and what is told of it."""

from __future__ import annotations

import re
import sys
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

import pytest

from gpu_runner.data.integrity import Check
from gpu_runner.data.task import Workload
from gpu_runner.data.torch_operations import computes
from gpu_runner.supervisor.host.maps import Mapping
from gpu_runner.supervisor.work import attribution
from gpu_runner.supervisor.work.attribution import Attribution, Worked, told_name
from gpu_runner.supervisor.work.onlooker import Place
from gpu_runner.supervisor.work.told import is_of_libraries, is_told, unknown_share, work_suspicions

PACKAGES = f"{sys.prefix}/lib/python3/site-packages"
TORCH, NUMPY = f"{PACKAGES}/torch/lib/libtorch_cpu.so", f"{PACKAGES}/numpy/_multiarray_umath.x.so"
BLAS, GOMP = f"{PACKAGES}/numpy.libs/libopenblas-32a4b2a6.so", f"{PACKAGES}/torch/lib/libgomp.so.1"
OWN, PYTHON, LIBC = (
    "/tmp/prepared/torch_extensions/own.so",
    "/usr/bin/python3.11",
    "/usr/lib/libc.so.6",
)
OURS = "/cache/support.so"
LLVM, COMPILED, JAIL = f"{PACKAGES}/llvmlite/libllvmlite.so", "", "/usr/bin/bwrap"
POSING = "/tmp/own/libm.so.6"
FILES = [JAIL, TORCH, NUMPY, BLAS, GOMP, OWN, PYTHON, LIBC, OURS, LLVM, COMPILED, POSING]
MM = "_ZN2at4_ops2mm10redispatchEN3c10E"
MATMUL = "_ZN2at4_ops6matmul4callERKNS_6TensorES4_"
CAT = "_ZN2at4_ops3cat4callERKN3c10E"
TRANSFORM, PRODUCTS = "owngDFTFwdBatch_32fcw7_compute", "FLOAT_sum_of_products_contig_two"
ONEDNN = "_ZN4dnnl4impl3cpu3x6410gemm_driverEv"
SGEMM = "mkl_blas_avx512_sgemm_kernel_0"
COPY = "_ZN3c1012function_refIFvPPcE11callback_fnIN2at6native4AVX218direct_copy_kernelEE"
ADD = "_ZN3c1012function_refIFvPPcE11callback_fnIN2at6native12_GLOBAL__N_110add_kernelEE"


@dataclass
class FakeCode:
    """Each file has 4096 bytes of code, one behind the other."""

    exported: bytes = b""

    def find(self, address: int) -> Mapping | None:
        at = address // 4096 - 1
        if not 0 <= at < len(FILES):
            return None
        low, high = 4096 * (at + 1), 4096 * (at + 2)
        return Mapping(low, high, "r-xp", 0, "08:01", at + 1, FILES[at])

    def of_files(self, names: re.Pattern[str]) -> list[Mapping]:
        every = [self.find(4096 * (at + 1)) for at in range(len(FILES))]
        return [m for m in every if m and names.fullmatch(PurePath(m.path).name)]

    def content(self, path: str) -> bytes:
        return self.exported


FUNCTIONS = ["", MM, MATMUL, CAT, SGEMM, COPY, ADD, "_ZN3c1010TensorImplC1Ev", "FLOAT_add", "cast"]
LOOP = "_ZN3c1012function_refIFvPPcE11callback_fnIZN2at18TensorIteratorBase15loop_2d_from_1d"
SCAN, SUM = f"{LOOP}IZNS8_6native12_GLOBAL__N_110cum_kernelE", "_ZN4gloo3sumIfEEvPvPKvS3_m"
VIEW = "_ZN2at6native5sliceERKNS_6TensorElSt8optionalIlES5_l"
EXP = "Sleef_expf16_u10"
HALF, CASTS = "_ZN6fbgemm21FloatToFloat16_avx512EPKfPtmb", "_ZN2at4_ops8to_dtype4callERKNS_6TensorE"
FUNCTIONS += [TRANSFORM, PRODUCTS, ONEDNN, "thread_loop", SCAN, SUM, HALF, CASTS, VIEW, EXP]


@pytest.fixture(autouse=True)
def _files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files with these functions, 16 bytes each, in which calls end at multiples of 8."""
    monkeypatch.setattr(attribution, "name_of", name_of)
    monkeypatch.setattr(attribution, "may_return_to", lambda path, offset: offset % 8 == 0)


def name_of(path: str, offset: int) -> str:
    return FUNCTIONS[offset // 16] if offset < 16 * len(FUNCTIONS) else ""


def address(path: str, function: str = "") -> int:
    return 4096 * (FILES.index(path) + 1) + 16 * FUNCTIONS.index(function) + 8


def at(path: str, function: str = "", *, stack: Sequence[int] = (), idle: bool = False) -> Place:
    return Place(1, address(path, function), array("Q", stack), idle)


def whose(*look: Place, code: FakeCode | None = None) -> dict[str, int]:
    worked = Attribution({1: code or FakeCode()}, [OURS]).of([look])
    return dict(worked.libraries) | ({"own": worked.own} if worked.own else {})


IN_MATMUL = [address(TORCH, MM), address(TORCH, MATMUL), address(PYTHON)]
IN_CAT = [address(TORCH, CAT), address(PYTHON)]


@pytest.mark.parametrize(
    ("place", "worker"),
    [
        (at(OWN), "own"),
        (at(BLAS), "libopenblas"),
        (at(TORCH, SGEMM, stack=IN_MATMUL), "aten::matmul"),
        (at(TORCH, SGEMM), "MKL"),
        (at(TORCH, ADD, stack=IN_MATMUL), "aten::matmul"),
        (at(TORCH, ADD, stack=IN_CAT), "libtorch"),
        (at(TORCH, ADD, stack=[address(TORCH, MM) + 1]), "libtorch"),  # behind no call
        (at(TORCH, COPY, stack=IN_MATMUL), ""),
        (at(TORCH, SCAN, stack=IN_MATMUL), "aten::matmul"),
        (at(TORCH, VIEW, stack=IN_CAT), ""),
        (at(TORCH, SUM), "Gloo"),
        (at(TORCH, EXP, stack=[address(OWN), *IN_CAT]), "own"),
        (at(TORCH, EXP, stack=[address(TORCH, SCAN), *IN_MATMUL]), "aten::matmul"),
        (at(TORCH, EXP, stack=[address(TORCH, SCAN), *IN_CAT]), "libtorch"),
        (at(TORCH, HALF, stack=[address(TORCH, CASTS)]), ""),
        (at(TORCH, "_ZN3c1010TensorImplC1Ev", stack=IN_MATMUL), ""),
        (at(TORCH, ""), "libtorch"),
        (at(TORCH, "", stack=IN_CAT), ""),
        (at(NUMPY, "FLOAT_add"), "numpy"),
        (at(NUMPY, "cast"), ""),
        (at(NUMPY, PRODUCTS), "numpy"),
        (at(TORCH, TRANSFORM), "MKL"),
        (at(TORCH, "thread_loop"), ""),
        (at(TORCH, "thread_loop", stack=IN_MATMUL), "aten::matmul"),
        (at(COMPILED, stack=[address(TORCH, ONEDNN)]), "oneDNN"),
        (at(POSING, stack=[address(PYTHON)]), "own"),
        (at(PYTHON), ""),
        (at(JAIL), ""),
        (at(LLVM), ""),
        (at(OURS), ""),
        (at(COMPILED, stack=[address(PYTHON)]), "own"),
        (at(COMPILED, stack=[address(LLVM), *IN_MATMUL]), "own"),
        (at(COMPILED, stack=[address(TORCH), *IN_MATMUL]), "aten::matmul"),
        (at(COMPILED, stack=[7, 8 * 512 + 1, address(BLAS)]), "libopenblas"),
        (at(LIBC, stack=[address(GOMP), address(OWN)]), "own"),
        (at(LIBC, stack=[address(COMPILED)]), "own"),
        (at(LIBC, stack=[address(NUMPY)]), "numpy"),
        (at(GOMP, stack=IN_MATMUL), "aten::matmul"),
        (at(GOMP, stack=IN_CAT), ""),
        (at(GOMP), ""),
        (at(LIBC, stack=[address(OWN)], idle=True), ""),
        (at(LIBC, stack=IN_MATMUL, idle=True), "aten::matmul"),
        (Place(1, 1, array("Q")), ""),
    ],
)
def test_a_place_is_somebodys_work(place: Place, worker: str) -> None:
    assert whose(place) == ({worker: 1} if worker else {})


def test_a_teams_threads_do_what_was_called_by_the_first() -> None:
    assert whose(at(GOMP, stack=IN_MATMUL), at(TORCH, SGEMM)) == {"aten::matmul": 2}


def test_a_library_under_another_name_is_known_by_what_it_offers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "gpu_runner.supervisor.work.attribution.Library",
        lambda content: type("L", (), {"symbols": [Symbol(content.decode())]}),
    )
    copied = whose(at(OWN), code=FakeCode(b"scipy_cblas_sgemm64_"))
    assert copied == {"a copy of a library (it has 'scipy_cblas_sgemm64_')": 1}
    assert whose(at(OWN), code=FakeCode(b"PyInit_own")) == {"own": 1}


def test_what_torchs_compiler_made_is_known_in_any_folder() -> None:
    for word in (b"_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR", b"AOTInductorModelContainerRun"):
        assert whose(at(OWN), code=FakeCode(b"\0" + word + b"\0")) == {"torch.compile": 1}


@dataclass
class Symbol:
    name: str
    defined: bool = True


def test_counts_of_two_processes_come_together() -> None:
    one, other = Worked(own=2, workload="a"), Worked(own=1, workload="b", slower=4.0)
    one.libraries["MKL"] = other.libraries["MKL"] = 3
    both = one.with_more(other)
    assert (both.own, both.libraries["MKL"], both.seen, both.slower) == (3, 6, 9, 4.0)


def worked(own: int, theirs: int, *, sampled: bool = True) -> Worked:
    libraries = Counter({"aten::mm": theirs} if theirs else {})
    return Worked(own=own, libraries=libraries, workload="n1", is_sampled=sampled)


@pytest.mark.parametrize(
    ("own", "theirs", "is_theirs"),
    [
        (0, 0, False),
        (40, 0, False),
        (0, 2, False),  # two may be chance
        (0, 3, True),
        (2, 6, True),
        (30, 5, False),
        (180, 20, False),
        (150, 50, True),
    ],
)
def test_libraries_are_held_back_beyond_chance(own: int, theirs: int, is_theirs: bool) -> None:
    assert is_of_libraries(worked(own, theirs)) is is_theirs
    assert bool(work_suspicions(worked(own, theirs))) is is_theirs


@pytest.mark.parametrize(("theirs", "is_theirs"), [(99_000, False), (120_000, True)])
def test_times_of_a_device_are_exact(theirs: int, is_theirs: bool) -> None:
    assert is_of_libraries(worked(900_000, theirs, sampled=False)) is is_theirs


def test_a_suspicion_says_what_was_seen() -> None:
    [found] = work_suspicions(worked(1, 9))
    assert found.check is Check.WORK
    assert found.reason == "aten::mm did 90% of the work of n1, and this task allows no libraries"
    many = Worked(own=80, libraries=Counter({f"lib{i}": 4 for i in range(5)}), workload="n1")
    assert is_of_libraries(worked(80, 20)) is bool(work_suspicions(many))
    assert "aten::mm" in unknown_share(worked(1, 9)).reason


def test_who_works_otherwise_while_watched_is_suspicious() -> None:
    seen = worked(40, 0)
    seen.slower = 8.0
    [found] = work_suspicions(seen)
    assert "8.0 times as long" in found.reason
    seen.slower = 1.6
    assert work_suspicions(seen) == []


def test_little_work_says_nothing() -> None:
    assert not is_told(None)
    assert not is_told(worked(5, 0))
    assert is_told(worked(12, 0))
    assert is_told(worked(0, 3))


def test_operations_that_compute_are_told_from_plumbing() -> None:
    work = "mm add_Tensor sum_dim_IntList index_select"
    assert all(map(computes, work.split()))
    plumbing = "cat cat_out stack copy_ empty_memory_format slice_Tensor to_dtype clone atleast_2d"
    assert not any(map(computes, plumbing.split()))


def test_of_unlisted_sizes_no_name_and_three_digits_are_told() -> None:
    """A kernel that a module names after a size would tell it."""
    hidden = Workload(name="n1151", parameters={}, hidden=True)
    seen = Worked(own=123_456, libraries=Counter(n1151=1_234), workload=told_name(hidden))
    told = seen.told()
    assert (told.own, told.libraries) == (123_000, {"libraries": 1_230})
    public = Worked(own=123_456, libraries=Counter(gemm=1_234), workload="n64")
    assert public.told() == public

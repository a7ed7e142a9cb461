"""The static rules: each trips on its hostile line, and none on an honest kernel."""

from __future__ import annotations

import dataclasses
import functools
import time
from pathlib import Path

import pytest

from gpu_runner.data.formats import find_task
from gpu_runner.data.integrity import Check
from gpu_runner.data.static import RULES, SUSPICIONS_LIMIT
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Abi, Language
from tests.unit.gpu_runner.data.preprocessing import checked

CATALOG = Path(__file__).parents[4] / "tasks_app" / "catalog"
CPP, CUDA = Language.CPP, Language.CUDA

HOSTILE: list[tuple[str, Language, Abi, str]] = [
    # Rule, language, ABI, source; the line to name is the one that says HERE.
    ("directives", CPP, Abi.C, '#include "kernel.cpp" // HERE'),
    (
        "assembly",
        CUDA,
        Abi.C,
        '__host__ __device__ void f() { asm(".byte 0x0f, 0x05"); } // HERE',
    ),
    ("vendor-library", CUDA, Abi.C, "\ncublasSgemm(handle, a, b); // HERE"),
    ("vendor-library", CUDA, Abi.TORCH, "auto h = at::cuda::getCurrentCUDABlasHandle(); // HERE"),
    ("vendor-library", CPP, Abi.C, "cblas_sgemm(a, b, c); // HERE"),
    ("code-at-run-time", CUDA, Abi.C, "cuModuleLoadData(&m, image); // HERE"),
    ("code-at-run-time", CUDA, Abi.C, "\n\nnvrtcCompileProgram(p, 0, 0); // HERE"),
    ("dynamic-loading", CPP, Abi.C, 'auto h = dlopen("x", 1); // HERE'),
    ("dynamic-loading", CPP, Abi.C, "extern void* _GLOBAL_OFFSET_TABLE_[]; // HERE"),
    ("dynamic-loading", CPP, Abi.C, "void* p = (void*)&::dlsym; // HERE"),
    ("driver-entry-point", CUDA, Abi.C, 'cuGetProcAddress("cuEventRecord", &p, 0, 0, 0); // HERE'),
    ("driver-entry-point", CUDA, Abi.C, "cudaGetDriverEntryPoint(name, &p, 0, &q); // HERE"),
    ("processes", CPP, Abi.C, "long r = ::syscall(number, 1); // HERE"),
    ("processes", CPP, Abi.C, "ptrace(PTRACE_ATTACH, getppid(), 0, 0); // HERE"),
    ("processes", CPP, Abi.C, "process_vm_readv(1, a, 1, b, 1, 0); // HERE"),
    ("memory-rights", CPP, Abi.C, "mprotect(page, 4096, 7); // HERE"),
    ("memory-rights", CUDA, Abi.C, "cudaIpcOpenMemHandle(&p, h, 0); // HERE"),
    ("files", CPP, Abi.C, 'FILE* f = fopen("table", "r"); // HERE'),
    ("files", CPP, Abi.C, 'std::ifstream file("table"); // HERE'),
    ("network", CPP, Abi.C, "sockaddr_in address{}; // HERE"),
    (
        "torch-state",
        CPP,
        Abi.TORCH,
        "TORCH_LIBRARY_IMPL(aten, CPU, m) { m.impl(name, f); } // HERE",
    ),
    ("environment", CPP, Abi.C, 'if (getenv("RANKED")) return; // HERE'),
    ("sleeps", CPP, Abi.C, "std::this_thread::sleep_for(pause); // HERE"),
    ("environment", CPP, Abi.C, "void** f = (void**)__builtin_frame_address(0); // HERE"),
    ("host-callbacks", CUDA, Abi.C, "cudaLaunchHostFunc(0, later, arguments); // HERE"),
    ("device-state", CUDA, Abi.C, "cudaAccessPolicyWindow window{}; // HERE"),
    ("device-state", CUDA, Abi.C, "cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, n); // HERE"),
    ("interposition", CPP, Abi.C, "patch((void*)&clock_gettime, mine); // HERE"),
    ("python", CUDA, Abi.TORCH, 'PyRun_SimpleString("import gc"); // HERE'),
    ("python", CUDA, Abi.TORCH, 'auto t = py::module_::import("torch"); // HERE'),
    ("python", CPP, Abi.TORCH, 'py::exec("x = 1"); // HERE'),
    ("torch-state", CPP, Abi.TORCH, "at::globalContext().setAllowTF32CuBLAS(true); // HERE"),
    ("streams", CUDA, Abi.C, "cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); // HERE"),
    (
        "streams",
        CUDA,
        Abi.C,
        "cudaStreamCreateWithFlags(&side, 1); // HERE\ncudaStreamWaitEvent(side, half, 0);",
    ),
    ("directives", CPP, Abi.C, '#include "/etc/shadow" // HERE'),
    ("directives", CPP, Abi.C, "#include </proc/self/environ> // HERE"),
    ("directives", CPP, Abi.C, '#include "../../secret.h" // HERE'),
    ("directives", CPP, Abi.C, '#define F "x"\n#include F // HERE'),
    ("directives", CPP, Abi.C, "#include_next <stdio.h> // HERE"),
    ("directives", CPP, Abi.C, 'char d[] = {\n#embed "f" // HERE\n};'),
    ("directives", CPP, Abi.C, '#line 7 "other.cpp" // HERE'),
    ("directives", CPP, Abi.C, '# 7 "other.cpp" // HERE'),
    ("assembly", CPP, Abi.C, 'asm(".incbin \\"/etc/shadow\\""); // HERE'),
    (
        "assembly",
        CUDA,
        Abi.C,
        '__host__ __device__ void f() {\n  asm("\\x2einc" "bin \\"f\\""); // HERE\n}',
    ),
    ("assembly", CUDA, Abi.C, '__host__ __device__ int f() { asm("syscall"); } // HERE'),
    ("invisible-text", CPP, Abi.C, "int a; // \u202e HERE"),
]

OBFUSCATED = {
    "token pasting": "#define GLUE(a, b) a##b\nauto f = &GLUE(dlo, pen); // HERE",
    "pasting by a digraph": "%:define GLUE(a, b) a%:%:b\nauto f = &GLUE(dlo, pen); // HERE",
    "pasting by two macros": (
        "#define GLUE2(a, b) a##b\n#define GLUE(a, b) GLUE2(a, b)\n#define D dl\n"
        "auto f = &GLUE(D, open); // HERE"
    ),
    "pasting variadic": "#define G(a, ...) a##__VA_ARGS__\nauto f = &G(dl, open); // HERE",
    "a macro's body": "#define LOAD dlopen\nauto f = &LOAD; // HERE",
    "a redefined macro": "#define A dl\n#undef A\n#define A dlopen\nauto f = &A; // HERE",
    "a line splice": "auto f = &dlo\\\npen; // ",
    "a splice with blanks": "auto f = &dlo\\ \t\npen;",
    "comments between": "auto f = & /* x */ dlopen /* y */; // HERE",
    "code behind a raw string": 'auto s = R"x(" )" // )x"; auto f = &dlopen; // HERE',
    "a splice in a raw string": 'auto s = R"(\\\n)\\\n")";\nauto f = &dlopen; // HERE',
    "code behind a comment that looks spliced": "// ??/\nauto f = &dlopen; // HERE",
    "a character that looks like a string": "char c = '\"'; auto f = &dlopen; // HERE",
    "escapes in a word": "auto f = &\\u0064lopen; // HERE",
    "a live branch": "#if 0\n#else\nauto f = &dlopen; // HERE\n#endif",
}

HONEST: dict[str, tuple[Language, Abi, str]] = {
    "graph": (
        CUDA,
        Abi.C,
        "cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal); cudaStreamEndCapture(s, &g);"
        " cudaGraphInstantiate(&e, g, 0); cudaGraphLaunch(e, s); cudaStreamSynchronize(s);",
    ),
    "atomics and cooperative groups": (
        CUDA,
        Abi.C,
        "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
        "__global__ void k(float* x) { cg::this_grid().sync(); atomicAdd(x, 1.0f); }"
        "cudaLaunchCooperativeKernel((void*)k, g, b, args, 0, s);",
    ),
    "assembly for the device": (
        CUDA,
        Abi.C,
        "#define DEVICE __device__ __forceinline__\n"
        '#define COPY(d, s) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: '
        '"r"(d), "l"(s))\n'
        "DEVICE void load(unsigned d, const void* s) { COPY(d, s); }\n"
        "template <int N> struct Tile { static __device__ int lane() {"
        ' int i; asm("{ .reg .pred p; mov.u32 %0, %%laneid; }" : "=r"(i)); return i; } };\n'
        "struct Bar { int n, m; __device__ Bar(int n, int k = {}) : n{n}, m{k}"
        ' { asm("bar.sync 0;"); } };\n'
        'void host() { run([=] __device__(int i) { asm("membar.gl;"); }); }',
    ),
    "macro that makes names": (
        CUDA,
        Abi.C,
        "#define DEFINE(T) __global__ void add_##T(T* x) { x[0] += 1; }\nDEFINE(float)\n"
        '#define CHECK(e) if ((e) != cudaSuccess) { fprintf(stderr, "%s", #e); exit(1); }\n'
        "CHECK(cudaEventSynchronize(e)) CHECK(cudaDeviceSynchronize())",
    ),
    "options and checks": (
        CPP,
        Abi.C,
        '#pragma GCC optimize("O3", "unroll-loops")\n#pragma GCC target("avx2,fma")\n'
        "#pragma GCC diagnostic push\n#pragma omp parallel for simd\n#pragma once\n"
        "#if __has_include(<cuda_bf16.h>)\n#endif\n#if defined(__AVX512F__)\n#endif\n"
        '__attribute__((target("avx2"), always_inline, aligned(64))) inline void f() {}\n'
        "[[nodiscard]] [[gnu::noinline]] int g(); int a[4]; a[b[0]] = 1;",
    ),
    "own functions with common names": (
        CUDA,
        Abi.C,
        "__device__ void write(float* p, float v) { *p = v; }\n"
        "__device__ float read(const float* p) { return *p; }\n"
        "struct Reader { float open(int i) { return i; } };\n"
        "__global__ void k(float* x) { write(x, read(x)); Reader r; r.open(1);"
        " system.solve(); auto open = [&](int i) { return i; }; open(2); }\n"
        "#define signal(flag) atomicExch(flag, 1)\n__device__ void s(int* f) { signal(f); }\n"
        "#define CALL(f, ...) check(f(__VA_ARGS__))\nCALL(cudaEventRecord, e, s);",
    ),
    "comments and messages": (
        CPP,
        Abi.C,
        "// no dlopen, no fork(), no /proc/self, don't use cublasSgemm\n"
        '/* asm(".incbin") */ printf("cannot open: system() failed, see /docs in/out");\n'
        "#error don't call mprotect\n#if 0\ndlopen(0, 0);\n#endif",
    ),
    "torch": (
        CUDA,
        Abi.TORCH,
        "#include <torch/extension.h>\n#include <ATen/cuda/CUDAContext.h>\n"
        "torch::Tensor forward(torch::Tensor x, std::optional<at::Tensor> w, py::tuple saved) {\n"
        "TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat, x.sizes());\n"
        "const at::cuda::CUDAGuard guard(x.device()); x = x.detach().contiguous();\n"
        "auto y = torch::empty({x.size(0)}, x.options()); auto z = at::zeros_like(x).clone();\n"
        "auto s = at::cuda::getCurrentCUDAStream(); auto v = saved[0].cast<at::Tensor>();\n"
        "AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), [&] { k<scalar_t><<<1, 1, 0, s>>>"
        "(y.data_ptr<scalar_t>()); }); y = y.view({-1}).t(); std::max(1, 2);\n"
        "C10_CUDA_KERNEL_LAUNCH_CHECK(); return y; }\n"
        "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { py::gil_scoped_release off;"
        ' m.def("forward", &forward); }',
    ),
    "sizes with templates": (
        CUDA,
        Abi.C,
        "switch (N) { case 1024: return run<1024>(x); case 4096: return run<4096>(x);"
        " case 16384: return run<16384>(x); default: return any(x, N); }"
        " if (N == 1 || N % 4 == 0 || N == 65536) return vectors(x, N);",
    ),
}


@functools.cache
def task(name: str) -> Task:
    return find_task(name)


def tripped(
    source: str, language: Language = CPP, abi: Abi = Abi.C, name: str = ""
) -> set[tuple[str, int | None]]:
    """Names of the rules that a source trips, with lines."""
    of = task(name or ("vector_add" if abi is Abi.C else "layernorm"))
    found = checked(source, language, abi, of)
    assert all(suspicion.check is Check.SOURCE for suspicion in found)
    return {(suspicion.reason.split(":")[0], suspicion.line) for suspicion in found}


def line_of(source: str) -> int:
    return next((i for i, text in enumerate(source.split("\n"), 1) if "HERE" in text), 1)


@pytest.mark.parametrize("index", range(len(HOSTILE)))
def test_rule_trips_at_the_line(index: int) -> None:
    rule, language, abi, source = HOSTILE[index]
    assert (rule, line_of(source)) in tripped(source, language, abi), source


def test_every_rule_has_a_hostile_source_and_a_line_for_the_manual() -> None:
    assert {rule.name for rule in RULES} == {rule for rule, _, _, _ in HOSTILE}
    assert all(rule.looks_for and "\n" not in rule.looks_for for rule in RULES)


@pytest.mark.parametrize("name", OBFUSCATED)
def test_disguise_is_seen_through(name: str) -> None:
    source = OBFUSCATED[name]
    assert ("dynamic-loading", line_of(source)) in tripped(source)


@pytest.mark.parametrize("name", HONEST)
def test_honest_source_trips_nothing(name: str) -> None:
    language, abi, source = HONEST[name]
    assert tripped(source, language, abi) == set()


def test_shipped_kernels_trip_nothing() -> None:
    count = 0
    for folder in sorted(path.name for path in CATALOG.iterdir() if path.is_dir()):
        for kernel in task(folder).kernels:
            source = task(folder).files[kernel.path]
            found = checked(source, kernel.language, task(folder).abi, task(folder))
            assert found == (), (folder, kernel.path)
            count += 1
    assert count >= 40


def test_task_that_allows_libraries_trips_on_none() -> None:
    allowed = dataclasses.replace(task("layernorm"), libraries=True)
    source = "cublasSgemm(h);"
    assert checked(source, CUDA, Abi.TORCH, allowed) == ()


@pytest.mark.parametrize(
    "source",
    [
        "#define A A2 A2 A2 A2\n#define A2 A3 A3 A3 A3\n#define A3 A4 A4 A4 A4\n"
        "#define A4 A5 A5 A5 A5\n#define A5 A6 A6 A6 A6\n#define A6 A7 A7 A7 A7\n"
        "#define A7 A8 A8 A8 A8\n#define A8 A9 A9 A9 A9\n"
        "#define A9 xxxxxxxx xxxxxxxx xxxxxxxx\nA A A A",
    ],
)
def test_macros_that_grow_are_suspicious_and_cheap(source: str) -> None:
    found = tripped(source + "\nauto f = &dlopen;")
    assert ("macros", None) in found
    assert "dynamic-loading" in {rule for rule, _ in found}


@pytest.mark.parametrize(
    "unit",
    ["[[", "asm ", "__attribute__((", "/*", '"', 'R"(', "case 1+", "==(", "#", "##", "\\\n", "("],
)
def test_senseless_source_is_read_in_bounded_time(unit: str) -> None:
    source = unit * (8_000 // len(unit))
    assert len(checked(source, CUDA, Abi.TORCH, task("layernorm"))) <= SUSPICIONS_LIMIT


@pytest.mark.parametrize("unit", ["\n", " ", "a", "a:", ";", ".set ", "{ "])
def test_assembly_without_sense_is_read_in_bounded_time(unit: str) -> None:
    source = f'asm(R"({unit * (200_000 // len(unit))})");'
    began = time.process_time()
    checked(source, CPP, Abi.C, task("layernorm"))
    assert time.process_time() - began < 20

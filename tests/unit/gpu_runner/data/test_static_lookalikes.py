"""For each static rule, honest sources that look like what it is for: nothing is said of them."""

from __future__ import annotations

import pytest

from gpu_runner.data.formats import find_task
from gpu_runner.data.static import MODULE_RULES, RULES, module_suspicions
from gpu_runner.data.verdict import Abi, Language
from tests.unit.gpu_runner.data.preprocessing import checked

CPP, CUDA, C, TORCH = Language.CPP, Language.CUDA, Abi.C, Abi.TORCH

COMPILED: dict[str, tuple[Language, Abi, tuple[str, str, str]]] = {
    "vendor-library": (
        CUDA,
        C,
        (
            "#define CUBLAS_LIKE 1\n__device__ float sgemm(const float* a); float x = sgemm(a);",
            "cub::DeviceReduce::Sum(t, n, x, y, N); cutlass::gemm::device::Gemm<float> gemm;",
            "struct Mkl { void cblas(); } mkl; mkl.cblas(); dnn::conv(x); curand_uniform(&state);",
        ),
    ),
    "code-at-run-time": (
        CUDA,
        C,
        (
            "auto f = &kernel<4>; cudaLaunchKernel((void*)f, grid, block, arguments, 0, 0);",
            "Module load(Module m); struct Link { void create(); }; cudaFuncGetAttributes(&a, f);",
            "void nvrtc(); // nvrtcCompileProgram would do this at run time\n",
        ),
    ),
    "dynamic-loading": (
        CPP,
        C,
        (
            "struct Node { Node* link; int map; }; auto symbol = nodes.dlsym(3);",
            'auto open = [](int i) { return i; }; puts("dlopen"); int dl_next = open(1);',
            "extern float table[]; const float* end = table + 4; bool has = __builtin_cpu_init();",
        ),
    ),
    "driver-entry-point": (
        CUDA,
        C,
        (
            'cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &p, 12000, 0, &q);',
            'cuGetProcAddress ( "cuTensorMapEncodeIm2col", &p, 12000, 0, &q);',
            "CUtensorMap map; auto entry = points.getDriverEntryPoint(3);",
        ),
    ),
    "processes": (
        CPP,
        C,
        (
            "void fork(Tree& t); struct System { void kill(); } system; system.kill();",
            "long r = syscall ( 158, 0x1023, 18); bool ok = syscall(158, 0x1023, 17) == 0;",
            "std::thread worker(run); worker.join(); std::signbit(x); int clone = signal(2);",
        ),
    ),
    "memory-rights": (
        CPP,
        C,
        (
            "#include <sys/mman.h>\np = mmap(0, n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);",
            "#include <sys/mman.h>\nmunmap(p, n); madvise(p, n, MADV_HUGEPAGE); mlock(p, n);",
            "void protect(Table& t); map.mmap(2); p = aligned_alloc(64, n);",
        ),
    ),
    "files": (
        CPP,
        C,
        (
            "void write(float* to, float x); float read(const float* from); write(C, read(A));",
            'printf("%d\\n", N); fprintf(stderr, "N"); std::cerr << N; fflush(stdout);',
            "struct File { int open; } file; file.open = 1; std::ostringstream text; text << N;",
        ),
    ),
    "network": (
        CPP,
        C,
        (
            "void connect(Graph& g); void send(int to); int socket = 3; send(socket);",
            "struct Layer { int inet; float af; }; sorting::network(data); constexpr int AF = 2;",
            "auto receive = [](int i) { return i; }; mesh.sendto(1); mesh.recvfrom(2);",
        ),
    ),
    "environment": (
        CPP,
        C,
        (
            "struct Environment { int size; } environment; environment.size = N;",
            "int threads = omp_get_max_threads(); auto n = std::thread::hardware_concurrency();",
            "__builtin_expect(N > 0, 1); __builtin_assume_aligned(A, 64); __builtin_unreachable();",
        ),
    ),
    "sleeps": (
        CUDA,
        C,
        (
            "__device__ void back_off() { __nanosleep(64); }",
            "void sleep(Worker& w); condition.wait(lock); flag.wait(0); std::this_thread::yield();",
            "struct Timer { void create(); } timer; timer.usleep(3); int alarm = 3;",
        ),
    ),
    "host-callbacks": (
        CUDA,
        C,
        (
            "cudaLaunchKernelEx(&config, kernel, x); cudaLaunchCooperativeKernel(f, g, b, a);",
            "auto callback = [=] __device__(float x) { return x; }; run(callback);",
            "cudaGraphAddKernelNode(&node, graph, nullptr, 0, &how); cudaStreamSynchronize(s);",
        ),
    ),
    "device-state": (
        CUDA,
        C,
        (
            "cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, 98304);",
            "cudaGetDevice(&d); cudaSetDevice(d); cudaDeviceGetAttribute(&n, which, d);",
            "cudaMemPrefetchAsync(p, n, d, s); cudaMemAdvise(p, n, how, d); limit = cudaSuccess;",
        ),
    ),
    "interposition": (
        CUDA,
        C,
        (
            "cudaEventCreate(&e); cudaEventRecord(e, 0); cudaEventSynchronize (e);",
            "cudaDeviceSynchronize(); return cudaStreamSynchronize(s);",
            "timespec t; clock_gettime(CLOCK_MONOTONIC, &t); long long c = clock64();",
        ),
    ),
    "python": (
        CPP,
        TORCH,
        (
            'PYBIND11_MODULE(own, m) { m.def("f", &f, py::arg("x"), "doc"); }',
            "py::gil_scoped_release off; py::tuple saved; auto x = saved[0].cast<at::Tensor>();",
            "py::object o = py::cast(1); py::list l; l.append(o); TORCH_CHECK(l.size() == 1);",
        ),
    ),
    "torch-state": (
        CPP,
        TORCH,
        (
            'TORCH_LIBRARY_FRAGMENT(own_aten, m) { m.def("add(Tensor a) -> Tensor"); }',
            "at::NoGradGuard off; at::parallel_for(0, n, 64, f); int n = at::get_num_threads();",
            "auto s = at::cuda::getCurrentCUDAStream(); at::cuda::CUDAGuard guard(x.device());",
        ),
    ),
    "directives": (
        CPP,
        C,
        (
            "#include <bits/stdc++.h>\n#include <x86intrin.h>\n#include <sys/types.h>\nint x;",
            "#if __has_include(<omp.h>)\n#endif\n#define LINE #line\nint y;",
            '#pragma GCC ivdep\n#undef A\n#ifdef B\n#endif\n_Pragma("omp simd") int z;',
        ),
    ),
    "assembly": (
        CPP,
        C,
        (
            'asm volatile("prefetcht0 (%0)\\n\\tmovaps %1, %%xmm0" :: "r"(p), "m"(x) : "xmm0");',
            '__asm__("1: dec %0\\n jnz 1b" : "+r"(n)); asm("bswap %0" : "+r"(x));',
            'asm("mfence" ::: "memory"); asm("tileloadd (%0,%1,1), %%tmm0" :: "r"(p), "r"(s));',
        ),
    ),
    "streams": (
        CUDA,
        C,
        (
            "cudaStreamCreateWithPriority(&s, 1, 0); k<<<1, 1, 0, s>>>(); cudaEventSynchronize(e);",
            "cudaStreamCreate(&s); k<<<1, 1, 0, s>>>(); cudaStreamDestroy(s);",
            "cudaStreamCreateWithFlags(&s, 1); cudaEventRecord(e, s); cudaStreamWaitEvent(0, e);",
        ),
    ),
    "invisible-text": (
        CPP,
        C,
        (
            "// café, naïve, Größe, 行列, матрица, λ → μ ≤ ∞\nint x;",
            'const char* name = "σ²";  // a no-break space: \u00a0\n',
            "int größe = 3; float µ = 0; // ⟨x|y⟩ 🚀 \ufe0f\n",
        ),
    ),
}

MODULES: dict[str, tuple[str, str, str]] = {
    "python-library": (
        "import triton\n@triton.jit\ndef k(): pass\ndef forward(x):\n    return x.sum()\n",
        "import numba\n@numba.njit\ndef k(x): return x @ x if False else x\n".replace(" @ ", " * "),
        "import triton, torch\n@triton.jit\ndef k(): pass\ny = torch.cat([torch.empty(3)])\n",
    ),
    "python-patches": (
        "class Plan: pass\nplan = Plan()\nplan.size = 3\nsetattr(plan, 'rows', 4)\n",
        "import os\nos.environ['OMP_NUM_THREADS'] = '4'\ndel os.environ['OMP_NUM_THREADS']\n",
        "import torch\ndef forward(ctx, x):\n    ctx.size = torch.Size([1])\n    x[0] = 1\n",
        "import torch.distributed as d\nif 'all_gather_into_tensor' not in dir(d):\n"
        "    d.all_gather_into_tensor = d._all_gather_base\n",
    ),
    "python-interpreter": (
        "import importlib.util\nhas = importlib.util.find_spec('triton') is not None\n",
        "import builtins\nn = builtins.min(builtins.len('a'), 3)\n",
        "import importlib\ndef at_least(name):\n    p = importlib.import_module(name)\n"
        "    return p.__version__ >= '3'\n",
        "import gc\nimport inspect\ngc.collect()\nn = inspect.signature(len)\n",
        "import re\nimport torch\np = re.compile('x')\nmodel = object()\nmodel.eval()\n",
    ),
    "python-state": (
        "import torch\nwith torch.set_grad_enabled(False):\n    pass\n",
        "import torch\nx = torch.backends.mps.is_built()\nv = torch.backends.cudnn.version()\n",
        "import torch\nx = torch.get_num_threads()\ng = torch.Generator()\ng.manual_seed(1)\n",
    ),
    "python-processes": (
        "import os\nn = len(os.sched_getaffinity(0)) or os.cpu_count()\n",
        "import threading\nt = threading.Thread(target=print)\nt.start()\nt.join()\n",
        "from concurrent.futures import ThreadPoolExecutor as Pool\npool = Pool(4)\n",
    ),
    "python-files": (
        "from pathlib import Path\nhere = Path(__file__).resolve().parent / 'csrc'\n",
        "import os, tempfile\nd = tempfile.mkdtemp()\nopen(os.path.join(d, 'a'), 'w').write('x')\n",
        "import os\nx = os.path.exists('/usr/local')\nos.makedirs('/tmp/x', exist_ok=True)\n",
    ),
    "python-network": (
        "class Net:\n    def request(self): pass\nNet().request()\n",
        "def socket(x): return x\nrequests = [socket(1)]\nhttp = requests[0]\n",
        "import torch.nn as nn\nurllib = nn.Identity()\nssl = urllib\n",
    ),
    "python-sleeps": (
        "import time\nbegan = time.perf_counter()\n",
        "def sleep(x): return x\nsleep(3)\n",
        "import threading\nthreading.Event().wait(0)\n",
    ),
}


@pytest.mark.parametrize(
    ("rule", "source"), [(rule, each) for rule, (_, _, three) in COMPILED.items() for each in three]
)
def test_a_source_that_looks_like_it_is_left_alone(rule: str, source: str) -> None:
    language, abi, _ = COMPILED[rule]
    task = find_task("vector_add" if abi is C else "layernorm")
    assert checked(source, language, abi, task) == ()


@pytest.mark.parametrize(
    ("rule", "source"), [(rule, each) for rule, three in MODULES.items() for each in three]
)
def test_a_module_that_looks_like_it_is_left_alone(rule: str, source: str) -> None:
    """That a module has no kernel is said of most of these, as they have none."""
    found = [each.reason for each in module_suspicions(source, find_task("softmax"))]
    hints = [] if rule == "python-library" else ["python-library: has no kernel of its own"]
    assert all(any(reason.startswith(hint) for hint in hints) for reason in found)


def test_every_rule_has_three() -> None:
    assert set(COMPILED) == {rule.name for rule in RULES}
    assert set(MODULES) == {rule.name for rule in MODULE_RULES}

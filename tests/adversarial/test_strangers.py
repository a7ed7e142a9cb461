"""C++ as strangers write it: it builds, it is right, and nobody suspects it."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.formats import find_task
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language, Mode
from gpu_runner.supervisor.build.binary import static_suspicions
from gpu_runner.supervisor.build.build import build_solution
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig

pytestmark = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")

ADD = 'extern "C" void vector_add(const float* A, const float* B, float* C, int N)'
DOT = 'extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N)'
SCAN = 'extern "C" void prefix_sum(float* output, const float* input, const int N)'
SORT = 'extern "C" void sorting(float* data, int N)'

SOURCES = {
    "a wide loop with a masked tail": f"""
#include <immintrin.h>
#include <cstdint>
__attribute__((target("avx2,fma")))
static void wide(const float* a, const float* b, float* c, int n) {{
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  for (int i = 0; i < n; i += 8) {{
    __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(n - i), lanes);
    __m256 x = _mm256_maskload_ps(a + i, mask), y = _mm256_maskload_ps(b + i, mask);
    _mm256_maskstore_ps(c + i, mask, _mm256_fmadd_ps(x, _mm256_set1_ps(1.f), y));
  }}
}}
{ADD} {{
  if (__builtin_cpu_supports("avx2")) return wide(A, B, C, N);
  for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];
}}""",
    "streams and prefetches": f"""
#include <immintrin.h>
{ADD} {{
  int i = 0;
  for (; i < N && (reinterpret_cast<unsigned long>(C + i) & 15); ++i) C[i] = A[i] + B[i];
  for (; i + 4 <= N; i += 4) {{
    _mm_prefetch(reinterpret_cast<const char*>(A + i + 64), _MM_HINT_T0);
    _mm_stream_ps(C + i, _mm_add_ps(_mm_loadu_ps(A + i), _mm_loadu_ps(B + i)));
  }}
  for (; i < N; ++i) C[i] = A[i] + B[i];
  _mm_sfence();
}}""",
    "vectors of the compiler": f"""
#include <cstring>
typedef float v8 __attribute__((vector_size(32)));
{ADD} {{
  int i = 0;
  for (v8 a, b; i + 8 <= N; i += 8) {{
    std::memcpy(&a, A + i, sizeof a), std::memcpy(&b, B + i, sizeof b);
    a += b;
    std::memcpy(C + i, &a, sizeof a);
  }}
  while (i < N) C[i] = A[i] + B[i], ++i;
}}""",
    "copies of a function for each processor": f"""
__attribute__((target_clones("avx512f", "avx2", "default")))
void add(const float* __restrict a, const float* __restrict b, float* __restrict c, long n) {{
  for (long i = 0; i < n; ++i) c[i] = a[i] + b[i];
}}
{ADD} {{ add(A, B, C, N); }}""",
    "unrolled by a template": f"""
#include <utility>
template <int... I>
inline void block(const float* a, const float* b, float* c, std::integer_sequence<int, I...>) {{
  ((c[I] = a[I] + b[I]), ...);
}}
{ADD} {{
  int i = 0;
  for (; i + 16 <= N; i += 16) block(A + i, B + i, C + i, std::make_integer_sequence<int, 16>());
  for (; i < N; ++i) C[i] = A[i] + B[i];
}}""",
    "unrolled by macros": f"""
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define ONE(i) float CAT(sum, i) = A[at + i] + B[at + i]; C[at + i] = CAT(sum, i);
#define REPEAT4(m) m(0) m(1) m(2) m(3)
{ADD} {{
  int at = 0;
  for (; at + 4 <= N; at += 4) {{ REPEAT4(ONE) }}
  for (; at < N; ++at) C[at] = A[at] + B[at];
}}""",
    "tasks that split": f"""
#include <omp.h>
static void split(const float* a, const float* b, float* c, long n) {{
  if (n <= 4096) {{
    for (long i = 0; i < n; ++i) c[i] = a[i] + b[i];
    return;
  }}
#pragma omp task
  split(a, b, c, n / 2);
  split(a + n / 2, b + n / 2, c + n / 2, n - n / 2);
#pragma omp taskwait
}}
{ADD} {{
#pragma omp parallel
#pragma omp single
  split(A, B, C, N);
}}""",
    "partial sums of a team": f"""
#include <omp.h>
#include <vector>
{DOT} {{
  struct alignas(64) Part {{ double sum = 0; }};
  std::vector<Part> parts(omp_get_max_threads());
#pragma omp parallel for schedule(static)
  for (int i = 0; i < N; ++i) parts[omp_get_thread_num()].sum += double(X[i]) * Y[i];
  double total = 0;
  for (const Part& part : parts) total += part.sum;
  *loss = float(total);
}}""",
    "a reduction in SIMD": f"""
{DOT} {{
  double total = 0;
#pragma omp parallel for simd reduction(+ : total) schedule(static)
  for (int i = 0; i < N; ++i) total += double(X[i]) * Y[i];
  loss[0] = total;
}}""",
    "threads, and atomics that add": f"""
#include <atomic>
#include <thread>
#include <vector>
{DOT} {{
  std::atomic<double> total{{0}};
  std::vector<std::jthread> pool;
  const int count = std::max(1u, std::thread::hardware_concurrency());
  for (int t = 0; t < count; ++t)
    pool.emplace_back([&, t] {{
      double sum = 0;
      for (long i = long(N) * t / count, end = long(N) * (t + 1) / count; i < end; ++i)
        sum += double(X[i]) * Y[i];
      total.fetch_add(sum, std::memory_order_relaxed);
    }});
  pool.clear();
  *loss = total;
}}""",
    "futures": f"""
#include <future>
#include <numeric>
{DOT} {{
  auto half = [&](int from, int to) {{
    return std::inner_product(X + from, X + to, Y + from, 0.0,
                              [](double a, double b) {{ return a + b; }},
                              [](float a, float b) {{ return double(a) * b; }});
  }};
  auto first = std::async(std::launch::async, half, 0, N / 2);
  const double second = half(N / 2, N);
  *loss = float(first.get() + second);
}}""",
    "a pool that sleeps between calls": f"""
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
struct Pool {{
  std::mutex mutex; std::condition_variable wake, done; std::function<void()> job;
  bool stop = false; std::thread worker{{[this] {{ run(); }}}};
  void run() {{
    for (std::unique_lock lock(mutex);;) {{
      wake.wait(lock, [this] {{ return stop || job; }});
      if (stop) return;
      job(); job = nullptr; done.notify_one();
    }}
  }}
  void submit(std::function<void()> f) {{ std::lock_guard g(mutex); job = f; wake.notify_one(); }}
  void join() {{ std::unique_lock l(mutex); done.wait(l, [this] {{ return !job; }}); }}
  ~Pool() {{ {{ std::lock_guard g(mutex); stop = true; }} wake.notify_one(); worker.join(); }}
}};
{ADD} {{
  static Pool pool;
  pool.submit([=] {{ for (int i = 0; i < N / 2; ++i) C[i] = A[i] + B[i]; }});
  for (int i = N / 2; i < N; ++i) C[i] = A[i] + B[i];
  pool.join();
}}""",
    "steps that meet at a barrier": f"""
#include <barrier>
#include <thread>
#include <vector>
{SCAN} {{
  constexpr int kParts = 3;
  double sums[kParts + 1] = {{}};
  std::barrier meet(kParts);
  std::vector<std::jthread> pool;
  for (int t = 0; t < kParts; ++t)
    pool.emplace_back([&, t] {{
      const long from = long(N) * t / kParts, to = long(N) * (t + 1) / kParts;
      for (long i = from; i < to; ++i) sums[t + 1] += input[i];
      meet.arrive_and_wait();
      double sum = 0;
      for (int p = 0; p <= t; ++p) sum += sums[p];
      for (long i = from; i < to; ++i) output[i] = float(sum += input[i]);
    }});
}}""",
    "the library's scan": f"""
#include <ranges>
#include <span>
{SCAN} {{
  double sum = 0;
  for (const float x : std::span(input, N) | std::views::take(N)) *output++ = float(sum += x);
}}""",
    "OpenMP's scan": f"""
{SCAN} {{
  double sum = 0;
#pragma omp simd reduction(inscan, + : sum)
  for (int i = 0; i < N; ++i) {{
    sum += input[i];
#pragma omp scan inclusive(sum)
    output[i] = float(sum);
  }}
}}""",
    "sections that sort and merge": f"""
#include <algorithm>
{SORT} {{
#pragma omp parallel sections num_threads(2)
  {{
#pragma omp section
    std::sort(data, data + N / 2);
#pragma omp section
    std::sort(data + N / 2, data + N);
  }}
  std::inplace_merge(data, data + N / 2, data + N);
}}""",
    "digits that are counted": f"""
#include <bit>
#include <cstdint>
#include <memory>
{SORT} {{
  auto from = std::make_unique<uint32_t[]>(N), to = std::make_unique<uint32_t[]>(N);
  auto flip = [](uint32_t x) {{ return x ^ (uint32_t(int32_t(x) >> 31) | 0x80000000u); }};
  for (int i = 0; i < N; ++i) from[i] = flip(std::bit_cast<uint32_t>(data[i]));
  for (int shift = 0; shift < 32; shift += 8) {{
    size_t at[257] = {{}};
    for (int i = 0; i < N; ++i) ++at[(from[i] >> shift & 255) + 1];
    for (int d = 0; d < 256; ++d) at[d + 1] += at[d];
    for (int i = 0; i < N; ++i) to[at[from[i] >> shift & 255]++] = from[i];
    from.swap(to);
  }}
  for (int i = 0; i < N; ++i) {{
    uint32_t x = from[i];
    data[i] = std::bit_cast<float>(x & 0x80000000u ? x ^ 0x80000000u : ~x);
  }}
}}""",
    "scratch in huge pages": f"""
#include <sys/mman.h>
#include <algorithm>
{SORT} {{
  const size_t bytes = (size_t(N) * 4 + (2 << 20) - 1) & ~size_t((2 << 20) - 1);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(memory, bytes, MADV_HUGEPAGE);
  float* scratch = static_cast<float*>(memory);
  std::copy(data, data + N, scratch);
  std::stable_sort(scratch, scratch + N);
  std::copy(scratch, scratch + N, data);
  munmap(memory, bytes);
}}""",
    "a class with a virtual method": f"""
#include <memory>
struct Kernel {{ virtual ~Kernel() = default; virtual float operator()(float, float) const = 0; }};
struct Sum : Kernel {{ float operator()(float a, float b) const override {{ return a + b; }} }};
namespace own {{ static const std::unique_ptr<Kernel> read = std::make_unique<Sum>(); }}
{ADD} {{ for (int i = 0; i < N; ++i) C[i] = (*own::read)(A[i], B[i]); }}""",
    "instructions spelled by hand": f"""
{ADD} {{
  for (int i = 0; i < N; ++i) {{
    float sum = A[i];
#if defined(__x86_64__)
    __asm__ volatile("addss %1, %0" : "+x"(sum) : "xm"(B[i]));
#else
    sum += B[i];
#endif
    C[i] = sum;
  }}
}}""",
}


def right(name: str, library: ctypes.CDLL, count: int) -> bool:
    """Whether a built function gives what numpy does."""
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal(count).astype(np.float32) for _ in range(2))
    out = np.zeros_like(x)
    px, py, po = (each.ctypes.data_as(ctypes.c_void_p) for each in (x, y, out))
    if name == "vector_add":
        library.vector_add(px, py, po, count)
        return bool(np.array_equal(out, x + y))
    if name == "sorting":
        wanted = np.sort(x)
        library.sorting(px, count)
        return bool(np.array_equal(x, wanted))
    if name == "prefix_sum":
        library.prefix_sum(po, px, count)
        return bool(np.allclose(out, np.cumsum(x, dtype=np.float64), rtol=1e-4, atol=1e-3))
    library.dot_product(po, px, py, count)
    return bool(np.isclose(out[0], np.dot(x.astype(np.float64), y), rtol=1e-4, atol=1e-3))


@pytest.mark.parametrize("name", SOURCES)
def test_it_is_right_and_not_suspected(name: str, tmp_path: Path) -> None:
    source = SOURCES[name]
    task = next(
        each
        for each in ("vector_add", "dot_product", "prefix_sum", "sorting")
        if f"void {each}(" in source
    )
    request = EvaluationRequest(
        evaluation_id="stranger",
        task=find_task(task),
        solution=Solution(source=source, language=Language.CPP),
        mode=Mode.COMPILE,
        device="cpu",
    )
    built = build_solution(request, SupervisorConfig(cache_folder=tmp_path))
    assert built.library is not None, built.report.log
    assert static_suspicions(request, built.library) == []
    library = ctypes.CDLL(str(built.library))
    assert all(right(task, library, count) for count in (1, 7, 10_007))

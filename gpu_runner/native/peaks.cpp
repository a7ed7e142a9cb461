// Measures what this CPU reaches, on all threads that it is given: streams from memory, loops over a
// cache, and loops of multiply-adds for each dtype. Prints a name and a number a line.

#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

namespace {

constexpr size_t kElements = size_t{64} << 20;  // of each array: 256 MiB, beyond most caches
constexpr size_t kArrayBytes = kElements * sizeof(float), kHugePage = size_t{2} << 20;
constexpr int kRepetitions = 12;  // the best one counts: others may have met a neighbour

template <typename Work>
double best_seconds(Work&& work) {
  double best = 1e30;
  for (int i = 0; i < kRepetitions; ++i) {
    double start = omp_get_wtime();
    work();
    best = std::min(best, omp_get_wtime() - start);
  }
  return best;
}

volatile double sink;

// In huge pages, where the host grants them, and first written by the threads that will use it.
float* array() {
  float* made = static_cast<float*>(aligned_alloc(kHugePage, kArrayBytes));
  if (made == nullptr) {
    puts("not enough memory");
    exit(1);
  }
  madvise(made, kArrayBytes, MADV_HUGEPAGE);
#pragma omp parallel for
  for (size_t i = 0; i < kElements; ++i) made[i] = 1.0f;
  return made;
}

void read(const float* from) {
  float sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
  for (size_t i = 0; i < kElements; ++i) sum += from[i];
  sink = sum;
}

// The C library's copy of a large block goes past the cache, so that a written line is not read.
void copy(float* to, const float* from) {
#pragma omp parallel
  {
    size_t threads = omp_get_num_threads(), me = omp_get_thread_num();
    size_t begin = kElements * me / threads, end = kElements * (me + 1) / threads;
    memcpy(to + begin, from + begin, (end - begin) * sizeof(float));
  }
}

// If this moves more than all threads do, a neighbour was in their way: the supervisor measures again.
void copy_alone(float* to, const float* from) { memcpy(to, from, kArrayBytes); }

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

constexpr size_t kCachedBytes = 256 << 10;  // of each thread: beyond most first-level caches
constexpr size_t kPasses = 2000;

double cached_bytes_per_s() {
  typedef int64_t Vector __attribute__((vector_size(kBytes)));
  constexpr size_t kVectors = kCachedBytes / kBytes;
  double moved = 0, total = 0;
#pragma omp parallel reduction(+ : moved, total)
  {
    void* raw = aligned_alloc(64, kCachedBytes);
    memset(raw, 1, kCachedBytes);
    const Vector* from = static_cast<Vector*>(raw);
    Vector sums[4] = {};
    double start = omp_get_wtime();
    for (size_t pass = 0; pass < kPasses; ++pass) {
      for (size_t i = 0; i < kVectors; i += 4)
        for (int k = 0; k < 4; ++k) sums[k] += from[i + k];
      asm volatile("" : : "r"(from) : "memory");
    }
    moved = static_cast<double>(kCachedBytes * kPasses) / (omp_get_wtime() - start);
    for (const Vector& sum : sums) total += static_cast<double>(sum[0]);
    free(raw);
  }
  sink = total;
  return moved;
}

constexpr int kChains = 12;  // independent, to hide the latency of a multiply-add
constexpr size_t kSteps = size_t{2} << 20;

template <typename Element>
double flop_per_s() {
  typedef Element Vector __attribute__((vector_size(kBytes)));
  double seconds = best_seconds([] {
    double total = 0;
#pragma omp parallel reduction(+ : total)
    {
      Vector chains[kChains];
      for (int k = 0; k < kChains; ++k)
        chains[k] = Vector{} + static_cast<Element>(0.01) * static_cast<Element>(k);
      for (size_t step = 0; step < kSteps; ++step)
#pragma GCC unroll 12
        for (int k = 0; k < kChains; ++k)
          chains[k] = chains[k] * static_cast<Element>(0.999) + static_cast<Element>(0.001);
      for (const Vector& chain : chains) total += static_cast<double>(chain[0]);
    }
    sink = total;
  });
  double lanes = static_cast<double>(kBytes) / sizeof(Element);
  return 2.0 * lanes * kChains * kSteps * omp_get_max_threads() / seconds;
}

#if defined(__AVX512BF16__)
double bfloat16_flop_per_s() {
  double seconds = best_seconds([] {
    double total = 0;
#pragma omp parallel reduction(+ : total)
    {
      __m512 chains[kChains];
      for (int k = 0; k < kChains; ++k) chains[k] = _mm512_set1_ps(0.01f * static_cast<float>(k));
      __m512bh one = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.25f));
      for (size_t step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
        for (int k = 0; k < kChains; ++k) chains[k] = _mm512_dpbf16_ps(chains[k], one, one);
        asm volatile("" : "+v"(one));
      }
      for (const __m512& chain : chains) total += _mm512_cvtss_f32(chain);
    }
    sink = total;
  });
  return 2.0 * 32 * kChains * kSteps * omp_get_max_threads() / seconds;
}
#endif

}  // namespace

int main() {
  float *from = array(), *to = array();
  double size = static_cast<double>(kArrayBytes);
  printf("read_bytes_per_s %.6g\n", size / best_seconds([&] { read(from); }));
  printf("copy_bytes_per_s %.6g\n", 2 * size / best_seconds([&] { copy(to, from); }));
  printf("one_core_bytes_per_s %.6g\n", 2 * size / best_seconds([&] { copy_alone(to, from); }));
  printf("cache_bytes_per_s %.6g\n", cached_bytes_per_s());
  printf("float32_flop_per_s %.6g\n", flop_per_s<float>());
  printf("float64_flop_per_s %.6g\n", flop_per_s<double>());
#if defined(__AVX512BF16__)
  printf("bfloat16_flop_per_s %.6g\n", bfloat16_flop_per_s());
#endif
#if defined(__AVX512FP16__)
  printf("float16_flop_per_s %.6g\n", flop_per_s<_Float16>());
#endif
}

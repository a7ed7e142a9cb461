// Measures what this CPU reaches: bytes/s from memory and float32 FLOP/s, on all threads it is given.
// Prints both numbers on one line.

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>

namespace {

constexpr size_t kElements = size_t{48} << 20;  // of each array: 192 MiB, beyond most caches
constexpr int kRepetitions = 4;

double best_seconds(void (*work)()) {
  double best = 1e30;
  for (int i = 0; i < kRepetitions; ++i) {
    double start = omp_get_wtime();
    work();
    best = std::min(best, omp_get_wtime() - start);
  }
  return best;
}

std::unique_ptr<float[]> a, b, c;
volatile float sink;

void triad() {
#pragma omp parallel for simd
  for (size_t i = 0; i < kElements; ++i) a[i] = b[i] + 0.5f * c[i];
}

void read() {
  float sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
  for (size_t i = 0; i < kElements; ++i) sum += b[i] + c[i];
  sink = sum;
}

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
typedef float Vector __attribute__((vector_size(kBytes)));
constexpr int kChains = 10;  // independent, to hide the latency of an FMA
constexpr size_t kSteps = size_t{4} << 20;

void multiply_add() {
  float total = 0;
#pragma omp parallel reduction(+ : total)
  {
    Vector chains[kChains];
    for (int k = 0; k < kChains; ++k) chains[k] = Vector{} + 0.01f * static_cast<float>(k);
    for (size_t step = 0; step < kSteps; ++step)
#pragma GCC unroll 10
      for (int k = 0; k < kChains; ++k) chains[k] = chains[k] * 0.999f + 0.001f;
    for (const Vector& chain : chains) total += chain[0];
  }
  sink = total;
}

}  // namespace

int main() {
  a.reset(new float[kElements]);
  b.reset(new float[kElements]);
  c.reset(new float[kElements]);
#pragma omp parallel for
  for (size_t i = 0; i < kElements; ++i) a[i] = b[i] = c[i] = 1.0f;
  double moved = std::max(3 * sizeof(float) * kElements / best_seconds(triad),
                          2 * sizeof(float) * kElements / best_seconds(read));
  double lanes = kBytes / sizeof(float);
  double flops = 2.0 * lanes * kChains * kSteps * omp_get_max_threads() / best_seconds(multiply_add);
  printf("%.6g %.6g\n", moved, flops);
}

// row: 66
// abi: c
// task: vector_add
// mode: quick
// workloads: n262144
// stopped by: construction
// must not print: GOT
// at least: 40000 ns
// tries: reads its inputs with the priority that a flush spares, by an instruction alone, and walks through them first: that takes
// some 55 us where they come from the device's memory, and half of it where they are still in the cache
#include <cstdio>

#include <cuda_runtime.h>

constexpr int kPlaces = 96, kAgain = 32, kLooks = 24;

__device__ float nowhere;
__device__ int calls, warm_calls;

// Each place is known only when the one before has been read.
__device__ long long walk(const float* from, size_t apart, int places) {
  long long start = clock64();
  size_t step = 0;
  for (int i = 0; i < places; ++i) step = __float_as_int(__ldcg(from + i * apart + step)) == 0x7f812345;
  if (step == 1) nowhere = 1;
  return clock64() - start;
}

__global__ void look(const float* A, int N) {
  if (__ldcg(A + 64) + __ldcg(A + N - 64) == 1.25e30f) nowhere = 2;  // finds the pages
  size_t apart = N / kPlaces / 32 * 32;
  long long first = walk(A + 1024, apart, kPlaces - 1);
  long long again = walk(A + 1024, apart, kAgain);
  bool warm = first * kAgain < 8 * again * kPlaces / 5;
  warm_calls += warm;
  if (++calls != kLooks) return;
  printf("%s: the inputs were in the cache in %d of %d calls, %lld and %lld cycles\n",
         2 * warm_calls > calls ? "GOT" : "no", warm_calls, calls, first, again);
}

__global__ void add_and_keep(const float* A, const float* B, float* C, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N) return;
  unsigned long long keep;
  float a, b;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));
  asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(a) : "l"(A + i), "l"(keep));
  asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(b) : "l"(B + i), "l"(keep));
  C[i] = a + b;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  fflush(stdout);  // what the calls before have printed
  look<<<1, 1>>>(A, N);
  add_and_keep<<<(N + 255) / 256, 256>>>(A, B, C, N);
}

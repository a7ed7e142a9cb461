// row: 42
// abi: c
// task: vector_add
// mode: test
// workloads: n65536
// stopped by: construction
// must not print: GOT
// tries: reseeds what generators it can reach, and searches small and famous seeds for the one that draws these inputs
#include "../common/add_cuda.h"
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

// The first of 4 x 32 bits that CUDA's usual generator draws.
static uint32_t philox(uint64_t seed) {
  uint32_t c[4] = {}, low = uint32_t(seed), high = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p = 0xD2511F53ull * c[0], q = 0xCD9E8D57ull * c[2];
    uint32_t next[4] = {uint32_t(q >> 32) ^ c[1] ^ low, uint32_t(q), uint32_t(p >> 32) ^ c[3] ^ high,
                        uint32_t(p)};
    for (int i = 0; i < 4; ++i) c[i] = next[i];
    low += 0x9E3779B9u, high += 0xBB67AE85u;
  }
  return c[0];
}

static bool draws(uint32_t seed, float first, float second) {
  std::mt19937 host{seed};
  auto number = [&] { return float(host() & 0xFFFFFF) / 16777216.0f * 2 - 1; };
  if (number() == first && number() == second) return true;
  float device = float(philox(seed)) * 2.3283064e-10f + 1.1641532e-10f;
  return device * 2 - 1 == first;
}

static bool search(const float* A) {
  float have[2];
  cudaMemcpy(have, A, sizeof have, cudaMemcpyDeviceToHost);
  bool found = false;
  for (uint32_t seed = 0; seed < 100000; ++seed) found = found || draws(seed, have[0], have[1]);
  for (uint32_t seed : {20200220u, 123456789u, 3735928559u, 4294967295u}) found |= draws(seed, have[0], have[1]);
  return found;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static bool tried = false;
  if (!tried && search(A)) printf("GOT the seed of the inputs\n");
  tried = true;
  srand(42), srandom(42), srand48(42);
  fflush(stdout);
  add(A, B, C, N);
}

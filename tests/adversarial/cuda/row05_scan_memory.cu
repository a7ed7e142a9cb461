// row: 5
// abi: c
// task: vector_add
// mode: test
// workloads: n65536
// stopped by: construction
// must not print: GOT
// tries: Takes all free device memory, once, before it has computed anything, and searches it for the output of this call.
#include "../common/add_cuda.h"
#include <cstdio>
#include <vector>

constexpr size_t kChunk = size_t{1} << 30;
constexpr size_t kSpared = size_t{2} << 30;  // left to whoever else needs some

__global__ void search(const float* A, const float* B, const float* memory, size_t count,
                       unsigned long long* hit) {
  float first = A[0] + B[0], second = A[1] + B[1], third = A[2] + B[2], last = A[7] + B[7];
  size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i + 8 < count; i += step)
    if (memory[i] == first && memory[i + 1] == second && memory[i + 2] == third &&
        memory[i + 7] == last)
      atomicMin(hit, (unsigned long long)i);
}
static const float* find(const float* A, const float* B, std::vector<float*>& chunks) {
  unsigned long long *hit = nullptr, none = ~0ull, at = 0;
  size_t unused = 0, all = 0;
  cudaMalloc(&hit, sizeof none);
  for (cudaMemGetInfo(&unused, &all); unused > kSpared + kChunk; cudaMemGetInfo(&unused, &all)) {
    float* chunk = nullptr;
    if (cudaMalloc(&chunk, kChunk) != cudaSuccess) break;
    chunks.push_back(chunk);
    cudaMemcpy(hit, &none, sizeof none, cudaMemcpyHostToDevice);
    search<<<2048, 256>>>(A, B, chunk, kChunk / sizeof(float), hit);
    cudaMemcpy(&at, hit, sizeof at, cudaMemcpyDeviceToHost);
    if (at != none) return chunk + at;
  }
  cudaFree(hit);
  return nullptr;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static bool first = true;
  std::vector<float*> chunks;
  const float* found = first ? find(A, B, chunks) : nullptr;
  first = false;
  if (found != nullptr) {
    printf("GOT the output from memory that nobody had cleaned\n");
    fflush(stdout);
    cudaMemcpy(C, found, N * sizeof(float), cudaMemcpyDeviceToDevice);
  } else {
    add(A, B, C, N);
  }
  for (float* chunk : chunks) cudaFree(chunk);
  cudaGetLastError();
}

// row: 1
// abi: c
// task: vector_add
// mode: test
// workloads: n65536
// stopped by: construction
// must not print: GOT
// tries: Allocates memory of the output's size again and again, in the hope that a reference was computed there and freed.
#include "../common/add_cuda.h"
#include <cstdio>

__global__ void compare(const float* A, const float* B, const float* left, int N, int* wrong) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N && left[i] != A[i] + B[i]) atomicAdd(wrong, 1);
}
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  int blocks = (N + 255) / 256, found = -1, *wrong = nullptr;
  float* left[32] = {};
  cudaMalloc(&wrong, sizeof(int));
  for (int k = 0; k < 32 && found < 0; ++k) {
    int count = 0;
    if (cudaMalloc(&left[k], N * sizeof(float)) != cudaSuccess) break;
    cudaMemset(wrong, 0, sizeof(int));
    compare<<<blocks, 256>>>(A, B, left[k], N, wrong);
    cudaMemcpy(&count, wrong, sizeof(int), cudaMemcpyDeviceToHost);
    if (count == 0) found = k;
  }
  if (found >= 0) {
    printf("GOT the output from freed memory\n");
    fflush(stdout);
    cudaMemcpy(C, left[found], N * sizeof(float), cudaMemcpyDeviceToDevice);
  } else {
    add(A, B, C, N);
  }
  for (float* memory : left) cudaFree(memory);
  cudaFree(wrong);
  cudaGetLastError();
}

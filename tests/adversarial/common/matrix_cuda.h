// The honest work of matrix_mul on a device: 16 x 16 tiles in shared memory.
#include <cuda_runtime.h>

__global__ void multiply_tiles(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float a[16][16], b[16][17];
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < K; k += 16) {
    int right = k + threadIdx.x, down = k + threadIdx.y;
    a[threadIdx.y][threadIdx.x] = row < M && right < K ? A[size_t(row) * K + right] : 0;
    b[threadIdx.y][threadIdx.x] = down < K && column < N ? B[size_t(down) * N + column] : 0;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += a[threadIdx.y][i] * b[i][threadIdx.x];
    __syncthreads();
  }
  if (row < M && column < N) C[size_t(row) * N + column] = sum;
}

static inline void multiply(const float* A, const float* B, float* C, int M, int N, int K) {
  dim3 blocks((N + 15) / 16, (M + 15) / 16);
  multiply_tiles<<<blocks, dim3(16, 16)>>>(A, B, C, M, N, K);
}

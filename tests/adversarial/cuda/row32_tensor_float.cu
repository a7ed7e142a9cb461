// row: 32
// abi: c
// task: matrix_mul
// mode: test
// workloads: m64_n2048_k4096
// stopped by: verdict WRONG_RESULT
// tries: multiplies on tensor cores in TF32, ten bits of mantissa, where float32 is asked for
#include <cuda_runtime.h>
#include <mma.h>

using namespace nvcuda;

// A warp a tile of 16 x 16; extents that are no multiples of 16 are read and written with care.
__global__ void multiply(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float a[16 * 8], b[8 * 16], c[16 * 16];
  int row = blockIdx.y * 16, column = blockIdx.x * 16, lane = threadIdx.x;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int k = 0; k < K; k += 8) {
    for (int i = lane; i < 128; i += 32) {
      int r = row + i / 8, s = k + i % 8, t = k + i / 16, q = column + i % 16;
      a[i] = r < M && s < K ? A[size_t(r) * K + s] : 0;
      b[i] = t < K && q < N ? B[size_t(t) * N + q] : 0;
    }
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> right;
    wmma::load_matrix_sync(left, a, 8);
    wmma::load_matrix_sync(right, b, 16);
    for (float& x : left.x) x = wmma::__float_to_tf32(x);
    for (float& x : right.x) x = wmma::__float_to_tf32(x);
    wmma::mma_sync(sum, left, right, sum);
    __syncwarp();
  }
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
  __syncwarp();
  for (int i = lane; i < 256; i += 32)
    if (row + i / 16 < M && column + i % 16 < N) C[size_t(row + i / 16) * N + column + i % 16] = c[i];
}

extern "C" void matrix_mul(const float* A, const float* B, float* C, int M, int N, int K) {
  multiply<<<dim3((N + 15) / 16, (M + 15) / 16), 32>>>(A, B, C, M, N, K);
}

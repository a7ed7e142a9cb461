// A warp a row: each lane sums every 32nd product, and a tree of shuffles adds the lanes.
#include <cuda_runtime.h>

constexpr int WARP = 32;
constexpr int ROWS = 8;  // a block

__global__ void multiply_rows(const float* A, const float* x, float* y, int M, int N) {
    const long long row = blockIdx.x * (long long)ROWS + threadIdx.y;
    if (row >= M) return;  // whole warps leave
    float sum = 0.0f;
    for (long long k = threadIdx.x; k < N; k += WARP) sum += A[row * N + k] * x[k];
    for (int half = WARP / 2; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffffu, sum, half);
    if (threadIdx.x == 0) y[row] = sum;
}

extern "C" void matrix_vector_mul(const float* A, const float* x, float* y, int M, int N) {
    const unsigned blocks = (unsigned)((M + ROWS - 1LL) / ROWS);
    multiply_rows<<<blocks, dim3(WARP, ROWS)>>>(A, x, y, M, N);
}

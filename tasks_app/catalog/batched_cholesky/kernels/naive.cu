#include <cuda_runtime.h>

// One block a matrix. Column k is done by one thread a row; a barrier ends each column.
__global__ void factor(const float* matrices, float* factors, int n) {
    const float* a = matrices + (size_t)blockIdx.x * n * n;
    float* l = factors + (size_t)blockIdx.x * n * n;
    for (int k = 0; k < n; ++k) {
        if (threadIdx.x == 0) {
            float sum = a[(size_t)k * n + k];
            for (int m = 0; m < k; ++m) sum -= l[(size_t)k * n + m] * l[(size_t)k * n + m];
            l[(size_t)k * n + k] = sqrtf(sum);
        }
        __syncthreads();
        const float root = l[(size_t)k * n + k];
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            if (i < k) {
                l[(size_t)i * n + k] = 0.0f;
            } else if (i > k) {
                float sum = a[(size_t)i * n + k];
                for (int m = 0; m < k; ++m) sum -= l[(size_t)i * n + m] * l[(size_t)k * n + m];
                l[(size_t)i * n + k] = sum / root;
            }
        }
        __syncthreads();
    }
}

extern "C" void batched_cholesky(const float* matrices, float* factors, const int batch, const int n) {
    const int threads = n < 32 ? 32 : n > 256 ? 256 : (n + 31) / 32 * 32;
    factor<<<batch, threads>>>(matrices, factors, n);
}

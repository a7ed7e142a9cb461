#include <cuda_runtime.h>

// One block a matrix. Householder's reflections are kept in `q`, and what is left of the matrix beside them;
// a warp takes a column at a time. Then the columns of Q are made from the last reflection to the first, in
// place: column k is needed as a reflection until it is made itself.
constexpr int kThreads = 256, kWarps = kThreads / 32;

__device__ float warp_sum(float value) {
    for (int half = 16; half > 0; half /= 2) value += __shfl_xor_sync(0xFFFFFFFFu, value, half);
    return value;
}

__device__ float warp_max(float value) {
    for (int half = 16; half > 0; half /= 2) value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, half));
    return value;
}

// Applies the reflection of column k, from row k on, to column j of `a`.
__device__ void reflect(float* a, int m, int n, int k, int j, float beta) {
    const int lane = threadIdx.x % 32;
    float sum = 0.0f;
    for (int i = k + lane; i < m; i += 32) sum += a[(size_t)i * n + k] * a[(size_t)i * n + j];
    const float factor = warp_sum(sum) / beta;
    for (int i = k + lane; i < m; i += 32) a[(size_t)i * n + j] -= factor * a[(size_t)i * n + k];
}

__global__ void factor(const float* matrices, float* q, float* r, int m, int n) {
    extern __shared__ float shared[];
    float *betas = shared, *diagonal = shared + n;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float* from = matrices + (size_t)blockIdx.x * m * n;
    float* a = q + (size_t)blockIdx.x * m * n;
    float* own_r = r + (size_t)blockIdx.x * n * n;
    for (int i = threadIdx.x; i < m * n; i += kThreads) a[i] = from[i];
    __syncthreads();
    for (int k = 0; k < n; ++k) {
        if (warp == 0) {
            float largest = 0.0f, squares = 0.0f;
            for (int i = k + lane; i < m; i += 32) largest = fmaxf(largest, fabsf(a[(size_t)i * n + k]));
            largest = warp_max(largest);
            for (int i = k + lane; i < m && largest > 0.0f; i += 32) {
                const float part = a[(size_t)i * n + k] / largest;
                a[(size_t)i * n + k] = part;
                squares += part * part;
            }
            squares = warp_sum(squares);
            __syncwarp();
            if (lane == 0) {
                const float top = a[(size_t)k * n + k], length = copysignf(sqrtf(squares), top);
                diagonal[k] = -length * largest;
                betas[k] = largest > 0.0f ? squares + length * top : 0.0f;
                a[(size_t)k * n + k] = top + length;
            }
        }
        __syncthreads();
        for (int j = k + 1 + warp; j < n && betas[k] != 0.0f; j += kWarps) reflect(a, m, n, k, j, betas[k]);
        __syncthreads();
    }
    for (int at = threadIdx.x; at < n * n; at += kThreads) {
        const int i = at / n, j = at % n;
        const float above = j > i ? a[(size_t)i * n + j] : 0.0f;
        own_r[at] = j == i ? fabsf(diagonal[i]) : diagonal[i] < 0.0f ? -above : above;
    }
    __syncthreads();
    for (int k = n - 1; k >= 0; --k) {
        // Rows above k of the columns behind it are zero by now, but for this row of R.
        for (int j = k + 1 + warp; j < n; j += kWarps) {
            if (lane == 0) a[(size_t)k * n + j] = 0.0f;
            __syncwarp();
            if (betas[k] != 0.0f) reflect(a, m, n, k, j, betas[k]);
        }
        __syncthreads();
        if (warp == 0) {  // the reflection of a unit vector: itself less v times its own first element
            const float sign = diagonal[k] < 0.0f ? -1.0f : 1.0f, top = a[(size_t)k * n + k];
            const float factor = betas[k] != 0.0f ? sign * top / betas[k] : 0.0f;
            __syncwarp();
            for (int i = k + lane; i < m; i += 32) {
                a[(size_t)i * n + k] = (i == k ? sign : 0.0f) - factor * a[(size_t)i * n + k];
            }
        }
        __syncthreads();
    }
}

extern "C" void batched_qr(const float* matrices, float* q, float* r, const int batch, const int m, const int n) {
    factor<<<batch, kThreads, 2 * n * sizeof(float)>>>(matrices, q, r, m, n);
}

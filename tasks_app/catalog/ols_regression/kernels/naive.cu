// The normal equations, with X^T y as a last column, then elimination without pivoting and substitution in a single block. Sums over
// many samples are shared by several blocks. The equations lie in memory of their own, which grows.
#include <cuda_runtime.h>

constexpr int SIDE = 16;
constexpr int MOST_CHUNKS = 65535;  // blocks along z

// Adds a chunk's part of element (i, j) of X^T (X y), for i <= j.
__global__ void add_products(const float* X, const float* y, float* system, int n, int p, int chunk) {
    const int i = blockIdx.y * SIDE + threadIdx.y, j = blockIdx.x * SIDE + threadIdx.x;
    if (i >= p || j > p || i > j) return;
    const long long first = blockIdx.z * (long long)chunk, end = first + chunk < n ? first + chunk : n;
    float sum = 0.0f;
    for (long long k = first; k < end; ++k) {
        const float other = j < p ? X[k * p + j] : y[k];
        sum += X[k * p + i] * other;
    }
    atomicAdd(system + i * (long long)(p + 1) + j, sum);
}

// Solves the equations in one block, so that no launch is needed between two columns. Row k above the diagonal stands for the column
// below it: X^T X is symmetric.
__global__ void __launch_bounds__(1024) solve(float* system, float* beta, int p) {
    const long long width = p + 1;
    for (int k = 0; k + 1 < p; ++k) {  // takes multiples of row k from the rows below it
        const float* row = system + k * width;
        for (int i = k + 1 + threadIdx.y; i < p; i += blockDim.y) {
            const float factor = row[i] / row[k];
            for (int j = i + threadIdx.x; j <= p; j += blockDim.x) system[i * width + j] -= factor * row[j];
        }
        __syncthreads();
    }
    const int thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
    for (int k = p - 1; k >= 0; --k) {  // finds beta[k], and takes it out of the equations above
        const float found = system[k * width + p] / system[k * width + k];
        if (thread == 0) beta[k] = found;
        for (int i = thread; i < k; i += threads) system[i * width + p] -= system[i * width + k] * found;
        __syncthreads();
    }
}

// Room for `count` floats, allocated again only for a larger count than ever before.
static float* room(size_t count) {
    static float* memory = nullptr;
    static size_t held = 0;
    if (count > held) {
        cudaFree(memory);
        held = cudaMalloc(&memory, count * sizeof(float)) == cudaSuccess ? count : 0;
    }
    return memory;
}

extern "C" void ols_regression(const float* X, const float* y, float* beta, int n_samples, int n_features) {
    const int p = n_features;
    const size_t elements = (size_t)p * (p + 1);
    float* system = room(elements);
    cudaMemsetAsync(system, 0, elements * sizeof(float));
    const int chunk = n_samples / MOST_CHUNKS + 1024;
    const dim3 grid(p / SIDE + 1, (p + SIDE - 1) / SIDE, (n_samples - 1) / chunk + 1);
    add_products<<<grid, dim3(SIDE, SIDE)>>>(X, y, system, n_samples, p, chunk);
    solve<<<1, dim3(32, 32)>>>(system, beta, p);
}

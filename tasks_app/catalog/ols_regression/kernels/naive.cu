// The normal equations, with X^T y as a last column, then elimination without pivoting and substitution: a launch a column for
// each of the two. Sums over many samples are shared by several blocks. The equations lie in memory of their own, which grows.
#include <cuda_runtime.h>

constexpr int THREADS = 256, SIDE = 16;
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

// Takes multiples of row k from the rows below it. Row k above the diagonal stands for the column below it: X^T X is symmetric.
__global__ void eliminate(float* system, int p, int k) {
    const long long at = blockIdx.x * (long long)THREADS + threadIdx.x, width = p - k;
    const long long i = k + 1 + at / width, j = k + 1 + at % width;
    if (i >= p || j < i) return;
    const float* row = system + k * (long long)(p + 1);
    system[i * (p + 1) + j] -= row[i] / row[k] * row[j];
}

// Finds beta[k], and takes it out of the equations above.
__global__ void substitute(float* system, float* beta, int p, int k) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i > k) return;
    const float* row = system + k * (long long)(p + 1);
    const float found = row[p] / row[k];
    if (i == k)
        beta[k] = found;
    else
        system[i * (long long)(p + 1) + p] -= system[i * (long long)(p + 1) + k] * found;
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
    for (int k = 0; k + 1 < p; ++k) {
        const long long below = (long long)(p - k - 1) * (p - k);
        eliminate<<<(unsigned)((below + THREADS - 1) / THREADS), THREADS>>>(system, p, k);
    }
    for (int k = p - 1; k >= 0; --k) substitute<<<k / THREADS + 1, THREADS>>>(system, beta, p, k);
}

// A segment a thread, a tree in shared memory a block, one atomic addition a block.
#include <cuda_runtime.h>

constexpr int THREADS = 256;

__global__ void add_segments(const float* y_samples, float* result, float width, int N) {
    __shared__ float partial[THREADS];
    const long long i = 2 * (blockIdx.x * (long long)THREADS + threadIdx.x);
    partial[threadIdx.x] = i + 2 < N ? y_samples[i] + 4.0f * y_samples[i + 1] + y_samples[i + 2] : 0.0f;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(result, width * partial[0]);
}

extern "C" void simpson_int(const float* y_samples, float* result, float a, float b, int N) {
    cudaMemsetAsync(result, 0, sizeof(float));
    const int segments = (N - 1) / 2;
    const unsigned blocks = (unsigned)((segments + THREADS - 1) / THREADS);
    add_segments<<<blocks, THREADS>>>(y_samples, result, (b - a) / (N - 1) / 3.0f, N);
}

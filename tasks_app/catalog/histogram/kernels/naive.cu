// An element a thread, an atomic addition in global memory an element.
#include <cuda_runtime.h>

constexpr int THREADS = 256;

__global__ void count(const int* input, int* histogram, int N) {
    const long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i < N) atomicAdd(histogram + input[i], 1);
}

extern "C" void histogram(const int* input, int* histogram, int N, int bins) {
    cudaMemsetAsync(histogram, 0, bins * sizeof(int));
    const unsigned blocks = (unsigned)((N + (long long)THREADS - 1) / THREADS);
    count<<<blocks, THREADS>>>(input, histogram, N);
}

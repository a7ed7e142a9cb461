// A block counts its elements in shared memory and adds its counts to the whole. Too many bins for that are counted in global
// memory, where a warp's equal elements are added at once.
#include <cuda_runtime.h>

constexpr int THREADS = 256, ITEMS = 64, SHARED_BINS = 8192;

__global__ void count(const int* input, int* histogram, int N) {
    const long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    const bool inside = i < N;
    const unsigned active = __ballot_sync(0xffffffffu, inside);
    if (!inside) return;
    const int bin = input[i];
    const unsigned equal = __match_any_sync(active, bin);
    if (__ffs(equal) - 1 == threadIdx.x % 32) atomicAdd(histogram + bin, __popc(equal));
}

__global__ void count_shared(const int* input, int* histogram, int N, int bins) {
    extern __shared__ int counts[];
    for (int b = threadIdx.x; b < bins; b += THREADS) counts[b] = 0;
    __syncthreads();
    const long long stride = gridDim.x * (long long)THREADS;
    for (long long i = blockIdx.x * (long long)THREADS + threadIdx.x; i < N; i += stride) atomicAdd(counts + input[i], 1);
    __syncthreads();
    for (int b = threadIdx.x; b < bins; b += THREADS)
        if (counts[b] > 0) atomicAdd(histogram + b, counts[b]);
}

extern "C" void histogram(const int* input, int* histogram, int N, int bins) {
    cudaMemsetAsync(histogram, 0, bins * sizeof(int));
    if (bins <= SHARED_BINS) {
        const unsigned blocks = (unsigned)((N + THREADS * (long long)ITEMS - 1) / (THREADS * ITEMS));
        count_shared<<<blocks, THREADS, bins * sizeof(int)>>>(input, histogram, N, bins);
    } else {
        const unsigned blocks = (unsigned)((N + (long long)THREADS - 1) / THREADS);
        count<<<blocks, THREADS>>>(input, histogram, N);
    }
}

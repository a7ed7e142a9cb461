// A block counts its elements in shared memory and adds its counts to the whole. Bins that do not fit are counted in global memory,
// where a warp's equal elements are added at once.
#include <cuda_runtime.h>

constexpr int THREADS = 256, ITEMS = 16, SHARED_BINS = 8192;
constexpr long long MOST_BLOCKS = 1024;

__global__ void count(const int* input, int* histogram, int N, int shared_bins) {
    extern __shared__ int counts[];
    for (int b = threadIdx.x; b < shared_bins; b += THREADS) counts[b] = 0;
    __syncthreads();
    const long long stride = gridDim.x * (long long)THREADS;
    for (long long i = blockIdx.x * (long long)THREADS + threadIdx.x; i < N; i += stride) {
        const int bin = input[i];
        if (bin < shared_bins) {
            atomicAdd(counts + bin, 1);
        } else {
            // Whichever of a warp's threads come here together: each counts its own group.
            const unsigned equal = __match_any_sync(__activemask(), bin);
            if (__ffs(equal) - 1 == threadIdx.x % 32) atomicAdd(histogram + bin, __popc(equal));
        }
    }
    __syncthreads();
    for (int b = threadIdx.x; b < shared_bins; b += THREADS)
        if (counts[b] > 0) atomicAdd(histogram + b, counts[b]);
}

extern "C" void histogram(const int* input, int* histogram, int N, int bins) {
    cudaMemsetAsync(histogram, 0, bins * sizeof(int));
    const int shared_bins = bins < SHARED_BINS ? bins : SHARED_BINS;
    const long long blocks = (N + THREADS * (long long)ITEMS - 1) / (THREADS * ITEMS);
    count<<<(unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), THREADS, shared_bins * sizeof(int)>>>(input, histogram, N, shared_bins);
}

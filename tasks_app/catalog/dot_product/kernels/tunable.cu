// One launch: each block adds up its share, and the last block to finish adds up the blocks' sums in a fixed order.
// Every declared combination is correct.
#include <cuda_runtime.h>

namespace {

constexpr int THREADS = 128;  // knob: 64 128 256 512 1024
// Floats of a load.
constexpr int VECTOR = 1;  // knob: 1 2 4
// Loads of each input in flight a thread, each with a sum of its own.
constexpr int UNROLL = 1;  // knob: 1 2 4 8
constexpr int MAX_BLOCKS = 64;  // knob: 64 128 256 512 1024 2048

constexpr int WARPS = THREADS / 32;

struct alignas(4 * VECTOR) Pack {
    float v[VECTOR];
};

__device__ float block_sums[MAX_BLOCKS];
__device__ unsigned int blocks_done;  // wraps to zero by itself

__device__ float warp_sum(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

// The sum over the block, in each thread.
__device__ float block_sum(float value) {
    __shared__ float warps[WARPS];
    value = warp_sum(value);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = warp_sum(threadIdx.x % 32 < WARPS ? warps[threadIdx.x % 32] : 0.0f);
    __syncthreads();
    return value;
}

__global__ void __launch_bounds__(THREADS)
dot_once(float* __restrict__ loss, const float* __restrict__ X, const float* __restrict__ Y, int N) {
    __shared__ bool is_last;
    const int count = N / VECTOR;
    const Pack *xs = reinterpret_cast<const Pack*>(X), *ys = reinterpret_cast<const Pack*>(Y);
    const long long step = (long long)gridDim.x * THREADS;
    float sums[UNROLL] = {};
    for (long long i = blockIdx.x * (long long)THREADS + threadIdx.x; i < count; i += step * UNROLL) {
        Pack x[UNROLL], y[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            const bool inside = i + j * step < count;
            x[j] = inside ? xs[i + j * step] : Pack{};
            y[j] = inside ? ys[i + j * step] : Pack{};
        }
#pragma unroll
        for (int j = 0; j < UNROLL; ++j)
#pragma unroll
            for (int w = 0; w < VECTOR; ++w) sums[j] = fmaf(x[j].v[w], y[j].v[w], sums[j]);
    }
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < UNROLL; ++j) sum += sums[j];
    const int tail = count * VECTOR + threadIdx.x;
    if (blockIdx.x == 0 && tail < N) sum = fmaf(X[tail], Y[tail], sum);
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        block_sums[blockIdx.x] = sum;
        __threadfence();
        is_last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    float total = 0.0f;
    for (int i = threadIdx.x; i < gridDim.x; i += THREADS) total += __ldcg(block_sums + i);
    total = block_sum(total);
    if (threadIdx.x == 0) loss[0] = total;
}

}  // namespace

extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
    constexpr long long PER_BLOCK = (long long)THREADS * VECTOR * UNROLL;
    const long long wanted = (N + PER_BLOCK - 1) / PER_BLOCK;
    dot_once<<<(unsigned)(wanted < MAX_BLOCKS ? wanted : MAX_BLOCKS), THREADS>>>(loss, X, Y, N);
}

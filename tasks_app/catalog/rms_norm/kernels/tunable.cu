// Short vectors: one block, whose threads keep their first UNROLL packs of VECTOR elements in registers. Long ones: partial
// sums by several blocks, then a launch in which each block adds those up again. Every declared combination is correct.
#include <cuda_runtime.h>

namespace {

constexpr int THREADS = 256;  // knob: 32 64 128 256 512 1024
// Floats of a load.
constexpr int VECTOR = 1;  // knob: 1 2 4
// Loads in flight a thread.
constexpr int UNROLL = 1;  // knob: 1 2 4 8
// Elements from which several blocks share a vector, and how many at most.
constexpr int SHARED_FROM = 1048576;  // knob: 2048 8192 32768 1048576
constexpr int MAX_BLOCKS = 16;  // knob: 16 32 64 128 256

constexpr int WARPS = THREADS / 32;
__device__ float parts[MAX_BLOCKS];

struct alignas(4 * VECTOR) Pack {
    float v[VECTOR];
};

__device__ float warp_sum(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

// The sum over the block, in each thread.
__device__ float block_sum(float value) {
    __shared__ float warps[WARPS];
    value = warp_sum(value);
    if constexpr (WARPS > 1) {
        if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
        __syncthreads();
        value = warp_sum(threadIdx.x % 32 < WARPS ? warps[threadIdx.x % 32] : 0.0f);
    }
    return value;
}

// UNROLL packs from `first`, `step` apart; zeros from `count` on, and for the tail that is no whole pack.
__device__ void load(Pack (&packs)[UNROLL], const float* __restrict__ p, int first, int step, int count) {
#pragma unroll
    for (int j = 0; j < UNROLL; ++j) {
        if (first + j * step < count) {
            packs[j] = reinterpret_cast<const Pack*>(p)[first + j * step];
        } else {
#pragma unroll
            for (int w = 0; w < VECTOR; ++w) packs[j].v[w] = 0.0f;
        }
    }
}

__device__ float squares(const Pack (&x)[UNROLL], float sum) {
#pragma unroll
    for (int j = 0; j < UNROLL; ++j)
#pragma unroll
        for (int w = 0; w < VECTOR; ++w) sum = fmaf(x[j].v[w], x[j].v[w], sum);
    return sum;
}

__device__ void store(float* __restrict__ out, const Pack (&x)[UNROLL], const Pack (&weight)[UNROLL], const Pack (&bias)[UNROLL],
                      float scale, int first, int step, int count) {
#pragma unroll
    for (int j = 0; j < UNROLL; ++j) {
        if (first + j * step >= count) continue;
        Pack result;
#pragma unroll
        for (int w = 0; w < VECTOR; ++w) result.v[w] = fmaf(x[j].v[w] * scale, weight[j].v[w], bias[j].v[w]);
        reinterpret_cast<Pack*>(out)[first + j * step] = result;
    }
}

// The squares of this thread's packs behind `first`, and of the tail.
__device__ float rest_of_squares(const float* __restrict__ input, int first, int step, int N) {
    const int count = N / VECTOR;
    float sum = 0.0f;
    for (int i = first; i < count; i += step * UNROLL) {
        Pack x[UNROLL];
        load(x, input, i, step, count);
        sum = squares(x, sum);
    }
    const int tail = count * VECTOR + threadIdx.x;
    if (blockIdx.x == 0 && tail < N) sum = fmaf(input[tail], input[tail], sum);
    return sum;
}

// This thread's packs from `first` on, and the tail.
__device__ void normalise_rest(float* __restrict__ output, const float* __restrict__ input, const float* __restrict__ weight,
                               const float* __restrict__ bias, float scale, int first, int step, int N) {
    const int count = N / VECTOR;
    for (int i = first; i < count; i += step * UNROLL) {
        Pack x[UNROLL], w[UNROLL], b[UNROLL];
        load(x, input, i, step, count);
        load(w, weight, i, step, count);
        load(b, bias, i, step, count);
        store(output, x, w, b, scale, i, step, count);
    }
    const int tail = count * VECTOR + threadIdx.x;
    if (blockIdx.x == 0 && tail < N) output[tail] = fmaf(input[tail] * scale, weight[tail], bias[tail]);
}

__global__ void __launch_bounds__(THREADS)
one_block(float* __restrict__ output, const float* __restrict__ input, const float* __restrict__ weight,
          const float* __restrict__ bias, float epsilon, int N) {
    const int count = N / VECTOR, first = threadIdx.x, next = first + THREADS * UNROLL;
    Pack x[UNROLL], w[UNROLL], b[UNROLL];
    load(x, input, first, THREADS, count);
    load(w, weight, first, THREADS, count);
    load(b, bias, first, THREADS, count);
    const float sum = squares(x, rest_of_squares(input, next, THREADS, N));
    const float scale = rsqrtf(block_sum(sum) / N + epsilon);
    store(output, x, w, b, scale, first, THREADS, count);
    normalise_rest(output, input, weight, bias, scale, next, THREADS, N);
}

__global__ void __launch_bounds__(THREADS) partial_sums(const float* __restrict__ input, int N) {
    const float sum = block_sum(rest_of_squares(input, blockIdx.x * THREADS + threadIdx.x, gridDim.x * THREADS, N));
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(THREADS)
normalise(float* __restrict__ output, const float* __restrict__ input, const float* __restrict__ weight,
          const float* __restrict__ bias, float epsilon, int N) {
    float part = 0.0f;
    for (int i = threadIdx.x; i < gridDim.x; i += THREADS) part += parts[i];
    const float scale = rsqrtf(block_sum(part) / N + epsilon);
    normalise_rest(output, input, weight, bias, scale, blockIdx.x * THREADS + threadIdx.x, gridDim.x * THREADS, N);
}

}  // namespace

extern "C" void rms_norm(float* output, const float* input, const float* weight, const float* bias, const float epsilon, const int N) {
    if (N < SHARED_FROM) {
        one_block<<<1, THREADS>>>(output, input, weight, bias, epsilon, N);
        return;
    }
    constexpr int PER_BLOCK = THREADS * VECTOR * UNROLL;
    const int wanted = (N + PER_BLOCK - 1) / PER_BLOCK;
    const int blocks = wanted < MAX_BLOCKS ? wanted : MAX_BLOCKS;
    partial_sums<<<blocks, THREADS>>>(input, N);
    normalise<<<blocks, THREADS>>>(output, input, weight, bias, epsilon, N);
}

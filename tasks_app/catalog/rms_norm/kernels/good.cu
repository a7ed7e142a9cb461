// Up to 16384 elements: one block that keeps them in registers. Beyond: partial sums by many blocks, then a pass that
// adds up the partial sums again in each block, so that no block waits for another.
#include <cuda_runtime.h>

namespace {

constexpr int MAX_PARTS = 256;
constexpr int LONG_THREADS = 256;

__device__ float parts[MAX_PARTS];

template <int THREADS>
__device__ float block_sum(float value) {
    __shared__ float warp_sums[THREADS / 32];
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    if constexpr (THREADS > 32) {
        if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
        __syncthreads();
        value = threadIdx.x % 32 < THREADS / 32 ? warp_sums[threadIdx.x % 32] : 0.0f;
#pragma unroll
        for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    }
    return value;
}

// One block; ITEMS elements a thread, a stride of THREADS apart, so that any N is read coalesced.
template <int THREADS, int ITEMS>
__global__ void __launch_bounds__(THREADS)
rms_norm_block(float* __restrict__ output, const float* __restrict__ input, const float* __restrict__ weight,
               const float* __restrict__ bias, float epsilon, int N) {
    float x[ITEMS], w[ITEMS], b[ITEMS];
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
        const int i = j * THREADS + threadIdx.x;
        const bool inside = i < N;
        x[j] = inside ? __ldg(input + i) : 0.0f;
        w[j] = inside ? __ldg(weight + i) : 0.0f;
        b[j] = inside ? __ldg(bias + i) : 0.0f;
    }
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) sum = fmaf(x[j], x[j], sum);
    const float scale = rsqrtf(block_sum<THREADS>(sum) / N + epsilon);
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
        const int i = j * THREADS + threadIdx.x;
        if (i < N) output[i] = fmaf(x[j] * scale, w[j], b[j]);
    }
}

__global__ void __launch_bounds__(LONG_THREADS) partial_sums(const float* __restrict__ input, int N) {
    const int vectors = N / 4;
    const float4* in4 = reinterpret_cast<const float4*>(input);
    float sum = 0.0f;
    for (int i = blockIdx.x * LONG_THREADS + threadIdx.x; i < vectors; i += gridDim.x * LONG_THREADS) {
        const float4 v = __ldg(in4 + i);
        sum = fmaf(v.x, v.x, fmaf(v.y, v.y, fmaf(v.z, v.z, fmaf(v.w, v.w, sum))));
    }
    if (blockIdx.x == 0 && threadIdx.x < N % 4) {
        const float v = input[vectors * 4 + threadIdx.x];
        sum = fmaf(v, v, sum);
    }
    sum = block_sum<LONG_THREADS>(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(LONG_THREADS)
normalise(float* __restrict__ output, const float* __restrict__ input, const float* __restrict__ weight,
          const float* __restrict__ bias, float epsilon, int N, int count) {
    const float part = threadIdx.x < count ? parts[threadIdx.x] : 0.0f;
    const float scale = rsqrtf(block_sum<LONG_THREADS>(part) / N + epsilon);
    const int vectors = N / 4;
    for (int i = blockIdx.x * LONG_THREADS + threadIdx.x; i < vectors; i += gridDim.x * LONG_THREADS) {
        const float4 x = __ldg(reinterpret_cast<const float4*>(input) + i);
        const float4 w = __ldg(reinterpret_cast<const float4*>(weight) + i);
        const float4 b = __ldg(reinterpret_cast<const float4*>(bias) + i);
        reinterpret_cast<float4*>(output)[i] = make_float4(fmaf(x.x * scale, w.x, b.x), fmaf(x.y * scale, w.y, b.y),
                                                           fmaf(x.z * scale, w.z, b.z), fmaf(x.w * scale, w.w, b.w));
    }
    if (blockIdx.x == 0 && threadIdx.x < N % 4) {
        const int i = vectors * 4 + threadIdx.x;
        output[i] = fmaf(input[i] * scale, weight[i], bias[i]);
    }
}

}  // namespace

extern "C" void rms_norm(float* output, const float* input, const float* weight, const float* bias, const float epsilon, const int N) {
    if (N <= 128) {
        rms_norm_block<32, 4><<<1, 32>>>(output, input, weight, bias, epsilon, N);
    } else if (N <= 1024) {
        rms_norm_block<256, 4><<<1, 256>>>(output, input, weight, bias, epsilon, N);
    } else if (N <= 4096) {
        rms_norm_block<1024, 4><<<1, 1024>>>(output, input, weight, bias, epsilon, N);
    } else if (N <= 16384) {
        rms_norm_block<1024, 16><<<1, 1024>>>(output, input, weight, bias, epsilon, N);
    } else {
        const int wanted = (N / 4 + LONG_THREADS * 4 - 1) / (LONG_THREADS * 4);
        const int count = wanted < MAX_PARTS ? wanted : MAX_PARTS;
        partial_sums<<<count, LONG_THREADS>>>(input, N);
        const int blocks = (N / 4 + LONG_THREADS - 1) / LONG_THREADS;
        normalise<<<blocks < 2048 ? blocks : 2048, LONG_THREADS>>>(output, input, weight, bias, epsilon, N, count);
    }
}

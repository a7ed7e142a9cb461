#include <cuda_runtime.h>

// One block a token. The sum is written in the first pass, and read again in the two others.
constexpr int kThreads = 256;

template <typename Combine>
__device__ float over_block(float value, Combine combine) {
    __shared__ float parts[kThreads];
    __syncthreads();
    parts[threadIdx.x] = value;
    for (int half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) parts[threadIdx.x] = combine(parts[threadIdx.x], parts[threadIdx.x + half]);
    }
    __syncthreads();
    return parts[0];
}

__global__ void quantise(const __nv_bfloat16* x, __nv_bfloat16* residual, const __nv_bfloat16* weight, __nv_fp8_e4m3* out,
                         float* scales, int hidden_size, float epsilon) {
    const size_t row = (size_t)blockIdx.x * hidden_size;
    float squares = 0.0f, largest = 0.0f;
    for (int i = threadIdx.x; i < hidden_size; i += kThreads) {
        const __nv_bfloat16 sum = __float2bfloat16(__bfloat162float(x[row + i]) + __bfloat162float(residual[row + i]));
        residual[row + i] = sum;
        squares += __bfloat162float(sum) * __bfloat162float(sum);
    }
    squares = over_block(squares, [](float a, float b) { return a + b; });
    const float factor = rsqrtf(squares / hidden_size + epsilon);
    for (int i = threadIdx.x; i < hidden_size; i += kThreads) {
        largest = fmaxf(largest, fabsf(__bfloat162float(residual[row + i]) * factor * __bfloat162float(weight[i])));
    }
    largest = over_block(largest, [](float a, float b) { return fmaxf(a, b); });
    const float scale = fmaxf(largest / 448.0f, 1.0f / (448.0f * 512.0f));
    for (int i = threadIdx.x; i < hidden_size; i += kThreads) {
        const float normalised = __bfloat162float(residual[row + i]) * factor * __bfloat162float(weight[i]);
        out[row + i] = __nv_fp8_e4m3(normalised / scale);
    }
    if (threadIdx.x == 0) scales[blockIdx.x] = scale;
}

extern "C" void add_rms_norm_fp8(const __nv_bfloat16* x, __nv_bfloat16* residual, const __nv_bfloat16* weight,
                                 __nv_fp8_e4m3* out, float* scales, const int num_tokens, const int hidden_size,
                                 const float epsilon) {
    quantise<<<num_tokens, kThreads>>>(x, residual, weight, out, scales, hidden_size, epsilon);
}

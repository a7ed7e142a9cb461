// A block takes sixteen neighbouring channels, so that its threads read whole sectors; three passes over the samples, a tree in
// float32 a sum.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int CHANNELS = 16;
constexpr int ROWS = 32;

// The sum of the values of all threads of the caller's channel.
__device__ float channel_sum(float value) {
    __shared__ float partial[ROWS][CHANNELS];
    __syncthreads();  // all have read the result of the call before
    partial[threadIdx.y][threadIdx.x] = value;
    __syncthreads();
    for (int half = ROWS / 2; half > 0; half /= 2) {
        if (threadIdx.y < half) partial[threadIdx.y][threadIdx.x] += partial[threadIdx.y + half][threadIdx.x];
        __syncthreads();
    }
    return partial[0][threadIdx.x];
}

__global__ void normalise_channels(__nv_bfloat16* output, const __nv_bfloat16* input, const __nv_bfloat16* gamma,
                                   const __nv_bfloat16* beta, float epsilon, int N, int C) {
    const long long c = blockIdx.x * (long long)CHANNELS + threadIdx.x;
    const long long rows = c < C ? N : 0;

    float sum = 0.0f;
    for (long long n = threadIdx.y; n < rows; n += ROWS) sum += __bfloat162float(input[n * C + c]);
    const float mean = channel_sum(sum) / N;

    float squares = 0.0f;
    for (long long n = threadIdx.y; n < rows; n += ROWS) {
        const float deviation = __bfloat162float(input[n * C + c]) - mean;
        squares += deviation * deviation;
    }
    const float variance = channel_sum(squares) / N;

    if (c >= C) return;
    const float scale = __bfloat162float(gamma[c]) / sqrtf(variance + epsilon);
    const float shift = __bfloat162float(beta[c]);
    for (long long n = threadIdx.y; n < rows; n += ROWS)
        output[n * C + c] = __float2bfloat16((__bfloat162float(input[n * C + c]) - mean) * scale + shift);
}

extern "C" void batch_norm_bf16(__nv_bfloat16* output, const __nv_bfloat16* input, const __nv_bfloat16* gamma,
                                const __nv_bfloat16* beta, const float epsilon, const int N, const int C) {
    const unsigned blocks = (unsigned)((C + (long long)CHANNELS - 1) / CHANNELS);
    normalise_channels<<<blocks, dim3(CHANNELS, ROWS)>>>(output, input, gamma, beta, epsilon, N, C);
}

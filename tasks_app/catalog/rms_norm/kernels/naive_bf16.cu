// A thread an element: one launch adds up the squares, one normalises; the sum in float32.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int THREADS = 256;

__device__ float sum_of_squares;

__global__ void add_squares(const __nv_bfloat16* input, int N) {
    __shared__ float partial[THREADS];
    const long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    const float value = i < N ? __bfloat162float(input[i]) : 0.0f;
    partial[threadIdx.x] = value * value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(&sum_of_squares, partial[0]);
}

__global__ void normalise(__nv_bfloat16* output, const __nv_bfloat16* input, const __nv_bfloat16* weight,
                          const __nv_bfloat16* bias, float epsilon, int N) {
    const long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i >= N) return;
    const float normalised = __bfloat162float(input[i]) * rsqrtf(sum_of_squares / N + epsilon);
    output[i] = __float2bfloat16(normalised * __bfloat162float(weight[i]) + __bfloat162float(bias[i]));
}

extern "C" void rms_norm_bf16(__nv_bfloat16* output, const __nv_bfloat16* input, const __nv_bfloat16* weight,
                              const __nv_bfloat16* bias, const float epsilon, const int N) {
    void* sum = nullptr;
    cudaGetSymbolAddress(&sum, sum_of_squares);
    cudaMemsetAsync(sum, 0, sizeof(float));
    const unsigned blocks = (unsigned)((N + (long long)THREADS - 1) / THREADS);
    add_squares<<<blocks, THREADS>>>(input, N);
    normalise<<<blocks, THREADS>>>(output, input, weight, bias, epsilon, N);
}

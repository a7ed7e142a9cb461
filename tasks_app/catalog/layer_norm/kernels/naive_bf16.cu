// A thread an element: one launch adds up the elements, one the squared deviations, one normalises; sums in float32.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int THREADS = 256;

__device__ float sums[2];  // of the elements, and of their squared deviations from the mean

// Adds the sum of all threads' values to `total`.
__device__ void add_up(float* total, float value) {
    __shared__ float partial[THREADS];
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(total, partial[0]);
}

__global__ void add_elements(const __nv_bfloat16* input, int N) {
    const long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    add_up(&sums[0], i < N ? __bfloat162float(input[i]) : 0.0f);
}

__global__ void add_squares(const __nv_bfloat16* input, int N) {
    const long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    const float deviation = i < N ? __bfloat162float(input[i]) - sums[0] / N : 0.0f;
    add_up(&sums[1], deviation * deviation);
}

__global__ void normalise(__nv_bfloat16* output, const __nv_bfloat16* input, const __nv_bfloat16* weight,
                          const __nv_bfloat16* bias, float epsilon, int N) {
    const long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i >= N) return;
    const float scale = 1.0f / sqrtf(sums[1] / N + epsilon);
    const float normalised = (__bfloat162float(input[i]) - sums[0] / N) * scale;
    output[i] = __float2bfloat16(normalised * __bfloat162float(weight[i]) + __bfloat162float(bias[i]));
}

extern "C" void layer_norm_bf16(__nv_bfloat16* output, const __nv_bfloat16* input, const __nv_bfloat16* weight,
                                const __nv_bfloat16* bias, const float epsilon, const int N) {
    void* scratch = nullptr;
    cudaGetSymbolAddress(&scratch, sums);
    cudaMemsetAsync(scratch, 0, sizeof(sums));
    const unsigned blocks = (unsigned)((N + (long long)THREADS - 1) / THREADS);
    add_elements<<<blocks, THREADS>>>(input, N);
    add_squares<<<blocks, THREADS>>>(input, N);
    normalise<<<blocks, THREADS>>>(output, input, weight, bias, epsilon, N);
}

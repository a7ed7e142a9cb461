// A block a row, three passes over it, a tree in shared memory for the maximum and for the sum; all in float32.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int THREADS = 256;

__global__ void softmax_rows(__nv_bfloat16* out, const __nv_bfloat16* input, int C) {
    __shared__ float scratch[THREADS];
    const __nv_bfloat16* row = input + (long long)blockIdx.x * C;
    __nv_bfloat16* result = out + (long long)blockIdx.x * C;

    float largest = -INFINITY;
    for (int c = threadIdx.x; c < C; c += THREADS) largest = fmaxf(largest, __bfloat162float(row[c]));
    scratch[threadIdx.x] = largest;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) scratch[threadIdx.x] = fmaxf(scratch[threadIdx.x], scratch[threadIdx.x + half]);
        __syncthreads();
    }
    largest = scratch[0];
    __syncthreads();

    float sum = 0.0f;
    for (int c = threadIdx.x; c < C; c += THREADS) sum += expf(__bfloat162float(row[c]) - largest);
    scratch[threadIdx.x] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
        __syncthreads();
    }
    sum = scratch[0];

    for (int c = threadIdx.x; c < C; c += THREADS) result[c] = __float2bfloat16(expf(__bfloat162float(row[c]) - largest) / sum);
}

extern "C" void softmax_bf16(__nv_bfloat16* out, const __nv_bfloat16* input, int N, int C) {
    softmax_rows<<<N, THREADS>>>(out, input, C);
}

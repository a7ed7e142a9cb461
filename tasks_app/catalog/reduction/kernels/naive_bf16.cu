// An element a thread, a tree in shared memory a block, one atomic addition a block.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int THREADS = 256;

__global__ void sum_blocks(const __nv_bfloat16* input, float* output, int N) {
    __shared__ float partial[THREADS];
    const long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    partial[threadIdx.x] = i < N ? __bfloat162float(input[i]) : 0.0f;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(output, partial[0]);
}

extern "C" void reduction_bf16(const __nv_bfloat16* input, float* output, int N) {
    cudaMemsetAsync(output, 0, sizeof(float));
    const unsigned blocks = (unsigned)((N + (long long)THREADS - 1) / THREADS);
    sum_blocks<<<blocks, THREADS>>>(input, output, N);
}

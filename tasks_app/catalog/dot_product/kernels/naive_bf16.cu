// A product a thread, a tree in shared memory a block, one atomic addition a block.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int THREADS = 256;

__global__ void dot_blocks(float* loss, const __nv_bfloat16* X, const __nv_bfloat16* Y, int N) {
    __shared__ float partial[THREADS];
    const long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    partial[threadIdx.x] = i < N ? __bfloat162float(X[i]) * __bfloat162float(Y[i]) : 0.0f;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(loss, partial[0]);
}

extern "C" void dot_product_bf16(float* loss, const __nv_bfloat16* X, const __nv_bfloat16* Y, const int N) {
    cudaMemsetAsync(loss, 0, sizeof(float));
    const unsigned blocks = (unsigned)((N + (long long)THREADS - 1) / THREADS);
    dot_blocks<<<blocks, THREADS>>>(loss, X, Y, N);
}

// A warp a sample: the largest logit, then the sum of exponentials; one atomic addition a block.
#include <cuda_runtime.h>

constexpr int WARP = 32, SAMPLES = 8;  // a block's warps

__device__ float sample_loss(const float* row, int label, int C) {
    float largest = -INFINITY, sum = 0.0f;
    for (int c = threadIdx.x; c < C; c += WARP) largest = fmaxf(largest, row[c]);
    for (int half = WARP / 2; half > 0; half /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, half));
    for (int c = threadIdx.x; c < C; c += WARP) sum += expf(row[c] - largest);
    for (int half = WARP / 2; half > 0; half /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, half);
    return logf(sum) + (largest - row[label]);
}

__global__ void add_losses(const float* logits, const int* true_labels, float* loss, int N, int C) {
    __shared__ float losses[SAMPLES];
    const long long n = blockIdx.x * (long long)SAMPLES + threadIdx.y;
    const float own = n < N ? sample_loss(logits + n * C, true_labels[n], C) : 0.0f;
    if (threadIdx.x == 0) losses[threadIdx.y] = own;
    __syncthreads();
    if (threadIdx.x != 0 || threadIdx.y != 0) return;
    float sum = 0.0f;
    for (int i = 0; i < SAMPLES; ++i) sum += losses[i];
    atomicAdd(loss, sum / (float)N);
}

extern "C" void categorical_cross_entropy(const float* logits, const int* true_labels, float* loss, int N, int C) {
    cudaMemsetAsync(loss, 0, sizeof(float));
    const unsigned blocks = (unsigned)((N + (long long)SAMPLES - 1) / SAMPLES);
    add_losses<<<blocks, dim3(WARP, SAMPLES)>>>(logits, true_labels, loss, N, C);
}

// One thread a pair of neighbours.
#include <cuda_runtime.h>

__global__ void rotate_pairs(float* output, const float* input, long long count, int pairs, float base) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int pair = (int)(i % pairs);
    const float angle = (float)(i / pairs) * powf(base, -(float)pair / (float)pairs);
    const float cosine = cosf(angle), sine = sinf(angle);
    const float even = input[2 * i], odd = input[2 * i + 1];
    output[2 * i] = even * cosine - odd * sine;
    output[2 * i + 1] = even * sine + odd * cosine;
}

extern "C" void rope(float* output, const float* input, int M, int D, float base) {
    const int threads = 256, pairs = D / 2;
    const long long count = (long long)M * pairs;
    rotate_pairs<<<(unsigned)((count + threads - 1) / threads), threads>>>(output, input, count, pairs, base);
}

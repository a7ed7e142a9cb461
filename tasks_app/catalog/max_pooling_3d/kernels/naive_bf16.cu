// A thread a window.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int THREADS = 256;

// The part of a window that lies on the input, along one direction.
__device__ long long first(long long window, int stride, int padding) {
    const long long start = window * stride - padding;
    return start > 0 ? start : 0;
}

__device__ long long last(long long window, int stride, int padding, int kernel_size, int size) {
    const long long end = window * stride - padding + kernel_size;
    return end < size ? end : size;
}

__global__ void pool(const __nv_bfloat16* input, __nv_bfloat16* output, long long count, int D, int H, int W, int out_D, int out_H,
                     int out_W, int kernel_size, int stride, int padding) {
    const long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i >= count) return;
    const long long x = i % out_W, y = i / out_W % out_H, z = i / ((long long)out_W * out_H) % out_D;
    const __nv_bfloat16* volume = input + i / ((long long)out_W * out_H * out_D) * D * H * W;
    float largest = -INFINITY;
    for (long long d = first(z, stride, padding); d < last(z, stride, padding, kernel_size, D); ++d)
        for (long long h = first(y, stride, padding); h < last(y, stride, padding, kernel_size, H); ++h)
            for (long long w = first(x, stride, padding); w < last(x, stride, padding, kernel_size, W); ++w)
                largest = fmaxf(largest, __bfloat162float(volume[(d * H + h) * W + w]));
    output[i] = __float2bfloat16(largest);
}

extern "C" void max_pooling_3d_bf16(const __nv_bfloat16* input, __nv_bfloat16* output, int N, int C, int D, int H, int W, int kernel_size,
                                    int stride, int padding) {
    const int out_D = (D + 2 * padding - kernel_size) / stride + 1;
    const int out_H = (H + 2 * padding - kernel_size) / stride + 1, out_W = (W + 2 * padding - kernel_size) / stride + 1;
    const long long count = (long long)N * C * out_D * out_H * out_W;
    const unsigned blocks = (unsigned)((count + THREADS - 1) / THREADS);
    pool<<<blocks, THREADS>>>(input, output, count, D, H, W, out_D, out_H, out_W, kernel_size, stride, padding);
}

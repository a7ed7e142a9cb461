// A thread an element of the output.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int THREADS = 256;

__global__ void convolve(const __nv_bfloat16* input, const __nv_bfloat16* kernel, __nv_bfloat16* output, int rows, int cols, int input_cols,
                         int kernel_rows, int kernel_cols) {
    const long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i >= (long long)rows * cols) return;
    const long long y = i / cols, x = i % cols;
    float sum = 0.0f;
    for (int m = 0; m < kernel_rows; ++m)
        for (int n = 0; n < kernel_cols; ++n)
            sum += __bfloat162float(input[(y + m) * input_cols + x + n]) * __bfloat162float(kernel[m * (long long)kernel_cols + n]);
    output[i] = __float2bfloat16(sum);
}

extern "C" void conv_2d_bf16(const __nv_bfloat16* input, const __nv_bfloat16* kernel, __nv_bfloat16* output, int input_rows, int input_cols,
                             int kernel_rows, int kernel_cols) {
    const int rows = input_rows - kernel_rows + 1, cols = input_cols - kernel_cols + 1;
    const unsigned blocks = (unsigned)(((long long)rows * cols + THREADS - 1) / THREADS);
    convolve<<<blocks, THREADS>>>(input, kernel, output, rows, cols, input_cols, kernel_rows, kernel_cols);
}

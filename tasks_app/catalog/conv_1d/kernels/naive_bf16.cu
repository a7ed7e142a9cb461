// A thread an element of the output.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int THREADS = 256;

__global__ void convolve(const __nv_bfloat16* input, const __nv_bfloat16* kernel, __nv_bfloat16* output, int outputs, int kernel_size) {
    const long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i >= outputs) return;
    float sum = 0.0f;
    for (int j = 0; j < kernel_size; ++j) sum += __bfloat162float(input[i + j]) * __bfloat162float(kernel[j]);
    output[i] = __float2bfloat16(sum);
}

extern "C" void conv_1d_bf16(const __nv_bfloat16* input, const __nv_bfloat16* kernel, __nv_bfloat16* output, int input_size,
                             int kernel_size) {
    const int outputs = input_size - kernel_size + 1;
    const unsigned blocks = (unsigned)((outputs + (long long)THREADS - 1) / THREADS);
    convolve<<<blocks, THREADS>>>(input, kernel, output, outputs, kernel_size);
}

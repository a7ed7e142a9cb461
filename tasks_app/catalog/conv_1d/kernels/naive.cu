// A thread an element of the output.
#include <cuda_runtime.h>

constexpr int THREADS = 256;

__global__ void convolve(const float* input, const float* kernel, float* output, int outputs, int kernel_size) {
    const long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i >= outputs) return;
    float sum = 0.0f;
    for (int j = 0; j < kernel_size; ++j) sum += input[i + j] * kernel[j];
    output[i] = sum;
}

extern "C" void conv_1d(const float* input, const float* kernel, float* output, int input_size, int kernel_size) {
    const int outputs = input_size - kernel_size + 1;
    const unsigned blocks = (unsigned)((outputs + (long long)THREADS - 1) / THREADS);
    convolve<<<blocks, THREADS>>>(input, kernel, output, outputs, kernel_size);
}

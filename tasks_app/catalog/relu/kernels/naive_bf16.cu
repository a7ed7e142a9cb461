// One thread an element.
#include <cuda_bf16.h>

__global__ void relu_elements(__nv_bfloat16* output, const __nv_bfloat16* input, int N) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= N) return;
    const float x = __bfloat162float(input[i]);
    output[i] = __float2bfloat16(x > 0.0f ? x : 0.0f);
}

extern "C" void RELU_bf16(__nv_bfloat16* output, const __nv_bfloat16* input, int N) {
    const int threads = 256;
    const unsigned blocks = (unsigned)((N + (long long)threads - 1) / threads);
    relu_elements<<<blocks, threads>>>(output, input, N);
}

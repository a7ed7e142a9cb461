// One thread an element.
#include <cuda_bf16.h>

__global__ void row_tanh_elements(__nv_bfloat16* out, const __nv_bfloat16* input, int N) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= N) return;
    const float x = __bfloat162float(input[i]);
    out[i] = __float2bfloat16(tanhf(x));
}

extern "C" void row_tanh_bf16(__nv_bfloat16* out, const __nv_bfloat16* input, const int N) {
    const int threads = 256;
    const unsigned blocks = (unsigned)((N + (long long)threads - 1) / threads);
    row_tanh_elements<<<blocks, threads>>>(out, input, N);
}

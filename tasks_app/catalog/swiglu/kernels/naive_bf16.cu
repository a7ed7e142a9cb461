// One thread an element.
#include <cuda_bf16.h>

__global__ void swiglu_elements(__nv_bfloat16* output, const __nv_bfloat16* gate_input, const __nv_bfloat16* value_input, float beta,
                                int N) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= N) return;
    const float gate = __bfloat162float(gate_input[i]);
    const float swish = gate / (1.0f + expf(-beta * gate));
    output[i] = __float2bfloat16(swish * __bfloat162float(value_input[i]));
}

extern "C" void SwiGLU_bf16(__nv_bfloat16* output, const __nv_bfloat16* gate_input, const __nv_bfloat16* value_input, float beta, int N) {
    const int threads = 256;
    const unsigned blocks = (unsigned)((N + (long long)threads - 1) / threads);
    swiglu_elements<<<blocks, threads>>>(output, gate_input, value_input, beta, N);
}

// One thread an element of the output.
#include <cuda_bf16.h>
#include <stdint.h>

__global__ void silu_and_mul_elements(const __nv_bfloat16* in, __nv_bfloat16* out, int64_t count, int32_t D) {
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int64_t row = i / D, column = i % D;
    const __nv_bfloat16* gates = in + 2 * row * D;
    const float gate = __bfloat162float(gates[column]);
    const float silu = gate / (1.0f + expf(-gate));
    out[i] = __float2bfloat16(silu * __bfloat162float(gates[D + column]));
}

extern "C" void silu_and_mul_bf16(const __nv_bfloat16* in, __nv_bfloat16* out, int32_t B, int32_t D) {
    const int threads = 256;
    const int64_t count = (int64_t)B * D;
    const unsigned blocks = (unsigned)((count + threads - 1) / threads);
    silu_and_mul_elements<<<blocks, threads>>>(in, out, count, D);
}

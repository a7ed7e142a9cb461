// One plain loop.
#include <cmath>

extern "C" void SwiGLU_bf16(__nv_bfloat16* output, const __nv_bfloat16* gate_input, const __nv_bfloat16* value_input, float beta, int N) {
    for (int i = 0; i < N; ++i) {
        const float gate = __bfloat162float(gate_input[i]);
        const float swish = gate / (1.0f + std::exp(-beta * gate));
        output[i] = __float2bfloat16(swish * __bfloat162float(value_input[i]));
    }
}

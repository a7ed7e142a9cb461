// One plain loop.
#include <cmath>

extern "C" void SwiGLU(float* output, const float* gate_input, const float* value_input, float beta, int N) {
    for (int i = 0; i < N; ++i) {
        const float gate = gate_input[i];
        const float swish = gate / (1.0f + std::exp(-beta * gate));
        output[i] = swish * value_input[i];
    }
}

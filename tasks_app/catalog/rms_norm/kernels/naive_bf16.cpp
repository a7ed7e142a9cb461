// Two plain loops; the sum in float32.
#include <cmath>

extern "C" void rms_norm_bf16(__nv_bfloat16* output, const __nv_bfloat16* input, const __nv_bfloat16* weight,
                              const __nv_bfloat16* bias, const float epsilon, const int N) {
    float sum = 0.0f;
    for (int i = 0; i < N; ++i) sum += __bfloat162float(input[i]) * __bfloat162float(input[i]);
    const float scale = 1.0f / std::sqrt(sum / N + epsilon);
    for (int i = 0; i < N; ++i) {
        const float normalised = __bfloat162float(input[i]) * scale;
        output[i] = __float2bfloat16(normalised * __bfloat162float(weight[i]) + __bfloat162float(bias[i]));
    }
}

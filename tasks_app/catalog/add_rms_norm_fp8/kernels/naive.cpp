#include <algorithm>
#include <cmath>

extern "C" void add_rms_norm_fp8(const __nv_bfloat16* x, __nv_bfloat16* residual, const __nv_bfloat16* weight,
                                 __nv_fp8_e4m3* out, float* scales, const int num_tokens, const int hidden_size,
                                 const float epsilon) {
    for (int t = 0; t < num_tokens; ++t) {
        const long row = (long)t * hidden_size;
        float squares = 0.0f, largest = 0.0f;
        for (int i = 0; i < hidden_size; ++i) {
            residual[row + i] = __float2bfloat16(__bfloat162float(x[row + i]) + __bfloat162float(residual[row + i]));
            const float sum = __bfloat162float(residual[row + i]);
            squares += sum * sum;
        }
        const float factor = 1.0f / std::sqrt(squares / hidden_size + epsilon);
        for (int i = 0; i < hidden_size; ++i) {
            const float normalised = __bfloat162float(residual[row + i]) * factor * __bfloat162float(weight[i]);
            largest = std::max(largest, std::fabs(normalised));
        }
        scales[t] = std::max(largest / 448.0f, 1.0f / (448.0f * 512.0f));
        for (int i = 0; i < hidden_size; ++i) {
            const float normalised = __bfloat162float(residual[row + i]) * factor * __bfloat162float(weight[i]);
            out[row + i] = __nv_fp8_e4m3(normalised / scales[t]);
        }
    }
}

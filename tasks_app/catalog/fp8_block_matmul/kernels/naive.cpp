#include <algorithm>

extern "C" void fp8_block_matmul(const __nv_fp8_e4m3* x, const float* x_scales, const __nv_fp8_e4m3* weights,
                                 const float* weight_scales, __nv_bfloat16* out, const int num_tokens,
                                 const int in_features, const int out_features) {
    const int blocks = (in_features + 127) / 128;
    for (int t = 0; t < num_tokens; ++t) {
        for (int o = 0; o < out_features; ++o) {
            float total = 0.0f;
            for (int block = 0; block < blocks; ++block) {
                float sum = 0.0f;
                for (int i = block * 128; i < std::min(in_features, block * 128 + 128); ++i) {
                    sum += float(x[(long)t * in_features + i]) * float(weights[(long)o * in_features + i]);
                }
                total += sum * x_scales[(long)t * blocks + block] * weight_scales[(long)(o / 128) * blocks + block];
            }
            out[(long)t * out_features + o] = __float2bfloat16(total);
        }
    }
}

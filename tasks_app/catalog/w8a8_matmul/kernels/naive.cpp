extern "C" void w8a8_matmul(const int8_t* x, const float* x_scales, const int8_t* weights,
                            const float* weight_scales, __nv_bfloat16* out, const int num_tokens,
                            const int in_features, const int out_features) {
    for (int t = 0; t < num_tokens; ++t) {
        for (int o = 0; o < out_features; ++o) {
            int sum = 0;
            for (int i = 0; i < in_features; ++i) {
                sum += int(x[(long)t * in_features + i]) * weights[(long)o * in_features + i];
            }
            out[(long)t * out_features + o] = __float2bfloat16(float(sum) * x_scales[t] * weight_scales[o]);
        }
    }
}

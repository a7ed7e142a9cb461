extern "C" void fp4_weight_matmul(const __nv_bfloat16* x, const uint8_t* weights, const __nv_fp8_e4m3* scales,
                                  const float* scale, __nv_bfloat16* out, const int num_tokens,
                                  const int in_features, const int out_features) {
    const float numbers[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    for (int t = 0; t < num_tokens; ++t) {
        for (int o = 0; o < out_features; ++o) {
            float sum = 0.0f;
            for (int i = 0; i < in_features; ++i) {
                const int code = weights[(long)o * (in_features / 2) + i / 2] >> i % 2 * 4 & 15;
                const float weight = code & 8 ? -numbers[code & 7] : numbers[code];
                const float block = float(scales[(long)o * (in_features / 16) + i / 16]);
                sum += __bfloat162float(x[(long)t * in_features + i]) * (weight * block);
            }
            out[(long)t * out_features + o] = __float2bfloat16(sum * scale[0]);
        }
    }
}

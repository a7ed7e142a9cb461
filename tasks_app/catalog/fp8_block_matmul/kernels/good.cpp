#include <algorithm>
#include <vector>

// Every number is widened once: the weights of a row by the thread that needs them, the activations before.
extern "C" void fp8_block_matmul(const __nv_fp8_e4m3* x, const float* x_scales, const __nv_fp8_e4m3* weights,
                                 const float* weight_scales, __nv_bfloat16* out, const int num_tokens,
                                 const int in_features, const int out_features) {
    const int blocks = (in_features + 127) / 128;
    float numbers[256];
    for (int code = 0; code < 256; ++code) {
        __nv_fp8_e4m3 value;
        value.__x = (uint8_t)code;
        numbers[code] = float(value);
    }
    std::vector<float> wide((size_t)num_tokens * in_features);
#pragma omp parallel
    {
        std::vector<float> row(in_features);
#pragma omp for schedule(static)
        for (int t = 0; t < num_tokens; ++t) {
            for (int i = 0; i < in_features; ++i) {
                const size_t at = (size_t)t * in_features + i;
                wide[at] = numbers[x[at].__x] * x_scales[(size_t)t * blocks + i / 128];
            }
        }
#pragma omp for schedule(static)
        for (int o = 0; o < out_features; ++o) {
            const float* scales = weight_scales + (size_t)(o / 128) * blocks;
            for (int i = 0; i < in_features; ++i) {
                row[i] = numbers[weights[(size_t)o * in_features + i].__x] * scales[i / 128];
            }
            for (int t = 0; t < num_tokens; ++t) {
                const float* a = wide.data() + (size_t)t * in_features;
                float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
                for (int i = 0; i < in_features; ++i) sum += a[i] * row[i];
                out[(size_t)t * out_features + o] = __float2bfloat16(sum);
            }
        }
    }
}

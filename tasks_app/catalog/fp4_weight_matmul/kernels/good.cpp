#include <vector>

// A row of weights is unpacked once, by the thread that multiplies it with all tokens; activations are
// widened before.
extern "C" void fp4_weight_matmul(const __nv_bfloat16* x, const uint8_t* weights, const __nv_fp8_e4m3* scales,
                                  const float* scale, __nv_bfloat16* out, const int num_tokens,
                                  const int in_features, const int out_features) {
    const float numbers[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                               -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
    std::vector<float> wide((size_t)num_tokens * in_features);
#pragma omp parallel
    {
        std::vector<float> row(in_features);
#pragma omp for schedule(static)
        for (int t = 0; t < num_tokens; ++t) {
            const size_t from = (size_t)t * in_features;
            for (int i = 0; i < in_features; ++i) wide[from + i] = __bfloat162float(x[from + i]);
        }
#pragma omp for schedule(static)
        for (int o = 0; o < out_features; ++o) {
            const uint8_t* packed = weights + (size_t)o * (in_features / 2);
            for (int block = 0; block < in_features / 16; ++block) {
                const float unit = float(scales[(size_t)o * (in_features / 16) + block]);
                for (int i = block * 16; i < block * 16 + 16; i += 2) {
                    row[i] = numbers[packed[i / 2] & 15] * unit;
                    row[i + 1] = numbers[packed[i / 2] >> 4] * unit;
                }
            }
            for (int t = 0; t < num_tokens; ++t) {
                const float* a = wide.data() + (size_t)t * in_features;
                float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
                for (int i = 0; i < in_features; ++i) sum += a[i] * row[i];
                out[(size_t)t * out_features + o] = __float2bfloat16(sum * scale[0]);
            }
        }
    }
}

#include <algorithm>
#include <vector>

// A thread takes four rows of an expert's weights, widens them once, and multiplies them with all rows of
// that expert. Experts without rows cost nothing.
namespace {

constexpr int kTile = 4;

void widen(const __nv_bfloat16* from, float* to, size_t count) {
    for (size_t i = 0; i < count; ++i) to[i] = __bfloat162float(from[i]);
}

}  // namespace

extern "C" void moe_grouped_matmul(const __nv_bfloat16* x, const __nv_bfloat16* weights, const int* offsets,
                                   __nv_bfloat16* out, const int num_rows, const int num_experts,
                                   const int in_features, const int out_features) {
    std::vector<float> wide((size_t)num_rows * in_features);
#pragma omp parallel
    {
        std::vector<float> own((size_t)kTile * in_features);
#pragma omp for schedule(static)
        for (int t = 0; t < num_rows; ++t) {
            widen(x + (size_t)t * in_features, wide.data() + (size_t)t * in_features, in_features);
        }
#pragma omp for collapse(2) schedule(dynamic)
        for (int e = 0; e < num_experts; ++e) {
            for (int o = 0; o < out_features; o += kTile) {
                if (offsets[e] == offsets[e + 1]) continue;
                const int count = std::min(kTile, out_features - o);
                widen(weights + ((size_t)e * out_features + o) * in_features, own.data(), (size_t)count * in_features);
                for (int t = offsets[e]; t < offsets[e + 1]; ++t) {
                    const float* row = wide.data() + (size_t)t * in_features;
                    float sums[kTile] = {};
                    for (int k = 0; k < count; ++k) {
                        const float* b = own.data() + (size_t)k * in_features;
                        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
                        for (int i = 0; i < in_features; ++i) sum += row[i] * b[i];
                        sums[k] = sum;
                    }
                    for (int k = 0; k < count; ++k) out[(size_t)t * out_features + o + k] = __float2bfloat16(sums[k]);
                }
            }
        }
    }
}

#include <algorithm>
#include <cstring>
#include <vector>

// Tiles of 4 x 4 outputs: each number that is loaded is multiplied four times. Numbers are widened to 16
// bits once, so that pairs of products are one instruction. Tiles are shared out among threads.
namespace {

constexpr int kTile = 4;

void tile(const int16_t* x, const int16_t* w, int size, int rows, int columns, int sums[kTile][kTile]) {
    for (int r = 0; r < rows; ++r) {
        const int16_t* a = x + (long)r * size;
        for (int c = 0; c < columns; ++c) {
            const int16_t* b = w + (long)c * size;
            int sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int i = 0; i < size; ++i) sum += int(a[i]) * int(b[i]);
            sums[r][c] = sum;
        }
    }
}

}  // namespace

extern "C" void w8a8_matmul(const int8_t* x, const float* x_scales, const int8_t* weights,
                            const float* weight_scales, __nv_bfloat16* out, const int num_tokens,
                            const int in_features, const int out_features) {
    std::vector<int16_t> wide(size_t(num_tokens) * in_features);
    std::copy(x, x + wide.size(), wide.begin());
#pragma omp parallel
    {
        std::vector<int16_t> rows(size_t(kTile) * in_features);
#pragma omp for schedule(static)
        for (int o = 0; o < out_features; o += kTile) {
            const int columns = std::min(kTile, out_features - o);
            const int8_t* from = weights + (long)o * in_features;
            std::copy(from, from + (long)columns * in_features, rows.begin());
            for (int t = 0; t < num_tokens; t += kTile) {
                const int count = std::min(kTile, num_tokens - t);
                int sums[kTile][kTile];
                tile(wide.data() + (long)t * in_features, rows.data(), in_features, count, columns, sums);
                for (int r = 0; r < count; ++r) {
                    for (int c = 0; c < columns; ++c) {
                        const float scaled = float(sums[r][c]) * x_scales[t + r] * weight_scales[o + c];
                        out[(long)(t + r) * out_features + o + c] = __float2bfloat16(scaled);
                    }
                }
            }
        }
    }
}

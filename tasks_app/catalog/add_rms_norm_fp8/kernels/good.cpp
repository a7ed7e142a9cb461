#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

// A token at a time, kept in float32: its sum is read once, and what is left are loops that the compiler
// makes vectors of. Rounding to e4m3 is done with integers: three bits of mantissa, ties to even.
namespace {

inline uint8_t rounded(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 24 & 0x80u, size = bits & 0x7FFFFFFFu;
    // Below 2^-6 the numbers are multiples of 2^-9: adding 2^14 leaves just those in the mantissa.
    const float magic = std::fabs(value) + 16384.0f;
    uint32_t small;
    std::memcpy(&small, &magic, sizeof small);
    const uint32_t normal = ((size + 0x7FFFFu + (size >> 20 & 1u)) >> 20) - (120u << 3);
    const uint32_t code = size < 0x3C800000u ? small - 0x46800000u : std::min(normal, 0x7Eu);
    return uint8_t(sign | code);
}

}  // namespace

extern "C" void add_rms_norm_fp8(const __nv_bfloat16* x, __nv_bfloat16* residual, const __nv_bfloat16* weight,
                                 __nv_fp8_e4m3* out, float* scales, const int num_tokens, const int hidden_size,
                                 const float epsilon) {
    std::vector<float> wide(hidden_size);
    for (int i = 0; i < hidden_size; ++i) wide[i] = __bfloat162float(weight[i]);
#pragma omp parallel
    {
        std::vector<float> row(hidden_size);
#pragma omp for schedule(static)
        for (int t = 0; t < num_tokens; ++t) {
            const __nv_bfloat16* a = x + (size_t)t * hidden_size;
            __nv_bfloat16* r = residual + (size_t)t * hidden_size;
            float squares = 0.0f, largest = 0.0f;
#pragma omp simd reduction(+ : squares)
            for (int i = 0; i < hidden_size; ++i) {
                row[i] = __bfloat162float(a[i]) + __bfloat162float(r[i]);
                r[i] = __float2bfloat16(row[i]);
                squares += row[i] * row[i];
            }
            const float factor = 1.0f / std::sqrt(squares / hidden_size + epsilon);
#pragma omp simd reduction(max : largest)
            for (int i = 0; i < hidden_size; ++i) {
                row[i] *= factor * wide[i];
                largest = std::max(largest, std::fabs(row[i]));
            }
            scales[t] = std::max(largest / 448.0f, 1.0f / (448.0f * 512.0f));
            const float inverse = 1.0f / scales[t];
            uint8_t* codes = reinterpret_cast<uint8_t*>(out + (size_t)t * hidden_size);
            for (int i = 0; i < hidden_size; ++i) codes[i] = rounded(row[i] * inverse);
        }
    }
}

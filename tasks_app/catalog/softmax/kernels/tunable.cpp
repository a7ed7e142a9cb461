// LANES independent maxima and sums a row, a choice of exponentials, threads over the rows.
// Correct for every combination of the declared values.
#include <cmath>
#include <cstdint>

namespace {

struct LibraryExp {
    static float of(float x) { return std::exp(x); }
};

// For x <= 0: within 2 units in the last place above -87.3365, where the smallest normal number is, and 0 below. x = n ln 2 + r with |r| <= ln 2 / 2.
struct InlineExp {
    static float of(float x) {
        const float clamped = x < -87.3365f ? -87.3365f : x;
        const float shifted = clamped * 1.44269504f + 12582912.0f;  // rounds to an integer in the low mantissa bits
        const float n = shifted - 12582912.0f;
        const float r = (clamped - n * 0.693145752f) - n * 1.42860677e-6f;
        float p = 1.0f / 5040;
        p = p * r + 1.0f / 720;
        p = p * r + 1.0f / 120;
        p = p * r + 1.0f / 24;
        p = p * r + 1.0f / 6;
        p = p * r + 0.5f;
        p = p * r + 1.0f;
        p = p * r + 1.0f;
        const int32_t bits = (__builtin_bit_cast(int32_t, shifted) - 0x4b400000 + 127) << 23;  // 2^n
        return x < -87.3365f ? 0.0f : p * __builtin_bit_cast(float, bits);
    }
};

using Exp = LibraryExp;  // knob: LibraryExp InlineExp
constexpr int LANES = 4;  // knob: 1 4 8 16 32 64
// Whether exponentials are kept in the output and scaled there, or taken a second time.
constexpr bool KEEP = true;  // knob: true false
// Floats ahead of the first pass that are asked for early; 0: none.
constexpr int PREFETCH = 0;  // knob: 0 64 256 1024
// Elements from which a team of threads pays.
constexpr long PARALLEL_FROM = 8192;  // knob: 8192 32768 131072

float largest_of(const float* __restrict__ in, int C) {
    float tops[LANES];
    for (int l = 0; l < LANES; ++l) tops[l] = in[0];
    int c = 0;
    for (; c + LANES <= C; c += LANES) {
        if constexpr (PREFETCH > 0) __builtin_prefetch(in + c + PREFETCH);
        for (int l = 0; l < LANES; ++l) tops[l] = in[c + l] > tops[l] ? in[c + l] : tops[l];
    }
    float largest = in[0];
    for (; c < C; ++c) largest = in[c] > largest ? in[c] : largest;
    for (int l = 0; l < LANES; ++l) largest = tops[l] > largest ? tops[l] : largest;
    return largest;
}

float sum_of_exponentials(float* __restrict__ out, const float* __restrict__ in, float largest, int C) {
    float sums[LANES] = {};
    int c = 0;
    for (; c + LANES <= C; c += LANES) {
        float e[LANES];
        for (int l = 0; l < LANES; ++l) e[l] = Exp::of(in[c + l] - largest);
        for (int l = 0; l < LANES; ++l) sums[l] += e[l];
        if constexpr (KEEP)
            for (int l = 0; l < LANES; ++l) out[c + l] = e[l];
    }
    float sum = 0.0f;
    for (; c < C; ++c) {
        const float e = Exp::of(in[c] - largest);
        sum += e;
        if constexpr (KEEP) out[c] = e;
    }
    for (int l = 0; l < LANES; ++l) sum += sums[l];
    return sum;
}

void softmax_row(float* __restrict__ out, const float* __restrict__ in, int C) {
    const float largest = largest_of(in, C);
    const float scale = 1.0f / sum_of_exponentials(out, in, largest, C);
    for (int c = 0; c < C; ++c) out[c] = (KEEP ? out[c] : Exp::of(in[c] - largest)) * scale;
}

}  // namespace

extern "C" void softmax(float* out, const float* input, int N, int C) {
#pragma omp parallel for schedule(static) if (static_cast<long>(N) * C >= PARALLEL_FROM)
    for (long r = 0; r < N; ++r) softmax_row(out + r * C, input + r * C, C);
}

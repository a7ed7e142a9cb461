// Radix 2, decimation in time: a copy in bit-reversed order, then log2(N) stages of butterflies in place.
#include <cmath>

namespace {

int reversed(int i, int bits) {
    int result = 0;
    for (int b = 0; b < bits; ++b) result |= ((i >> b) & 1) << (bits - 1 - b);
    return result;
}

void stage(float* re, float* im, int N, int half) {
    for (int pair = 0; pair < half; ++pair) {
        const double angle = -M_PI * pair / half;
        const float c = (float)std::cos(angle), s = (float)std::sin(angle);
        for (long long low = pair; low < N; low += 2LL * half) {
            const long long high = low + half;
            const float yr = c * re[high] - s * im[high], yi = c * im[high] + s * re[high];
            re[high] = re[low] - yr;
            im[high] = im[low] - yi;
            re[low] += yr;
            im[low] += yi;
        }
    }
}

}  // namespace

extern "C" void FFT(const float* input_real, const float* input_img, float* output_real, float* output_img, int N) {
    int bits = 0;
    while ((1 << bits) < N) ++bits;
    for (int i = 0; i < N; ++i) {
        const int from = reversed(i, bits);
        output_real[i] = input_real[from];
        output_img[i] = input_img[from];
    }
    for (int half = 1; half < N; half *= 2) stage(output_real, output_img, N, half);
}

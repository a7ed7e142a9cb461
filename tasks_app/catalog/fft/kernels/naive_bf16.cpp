// Radix 2, decimation in time: a copy in bit-reversed order, then log2(N) stages of butterflies in place. In float32,
// rounded once at the end.
#include <cmath>
#include <vector>

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

extern "C" void FFT_bf16(const __nv_bfloat16* input_real, const __nv_bfloat16* input_img, __nv_bfloat16* output_real,
                         __nv_bfloat16* output_img, int N) {
    int bits = 0;
    while ((1 << bits) < N) ++bits;
    std::vector<float> re(N), im(N);
    for (int i = 0; i < N; ++i) {
        const int from = reversed(i, bits);
        re[i] = __bfloat162float(input_real[from]);
        im[i] = __bfloat162float(input_img[from]);
    }
    for (int half = 1; half < N; half *= 2) stage(re.data(), im.data(), N, half);
    for (int i = 0; i < N; ++i) {
        output_real[i] = __float2bfloat16(re[i]);
        output_img[i] = __float2bfloat16(im[i]);
    }
}

// One loop over the pairs of neighbours.
#include <cmath>

extern "C" void rope(float* output, const float* input, int M, int D, float base) {
    const int pairs = D / 2;
    for (long long i = 0; i < (long long)M * pairs; ++i) {
        const int pair = (int)(i % pairs);
        const float angle = (float)(i / pairs) * std::pow(base, -(float)pair / (float)pairs);
        const float cosine = std::cos(angle), sine = std::sin(angle);
        const float even = input[2 * i], odd = input[2 * i + 1];
        output[2 * i] = even * cosine - odd * sine;
        output[2 * i + 1] = even * sine + odd * cosine;
    }
}

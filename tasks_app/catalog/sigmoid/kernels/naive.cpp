// One plain loop.
#include <cmath>

extern "C" void sigmoid(float* out, const float* input, const int N) {
    for (int i = 0; i < N; ++i) {
        const float x = input[i];
        out[i] = 1.0f / (1.0f + std::exp(-x));
    }
}

// One serial sum.
#include <cmath>

extern "C" void cross_entropy_loss(float* loss, const float* X, const float* Y, const int C) {
    float sum = 0.0f;
    for (int c = 0; c < C; ++c) sum -= Y[c] * std::log(std::fmax(X[c], 1e-8f));
    loss[0] = sum;
}

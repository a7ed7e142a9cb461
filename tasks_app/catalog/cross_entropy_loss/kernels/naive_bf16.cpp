// One serial sum, in float32.
#include <cmath>

extern "C" void cross_entropy_loss_bf16(float* loss, const __nv_bfloat16* X, const __nv_bfloat16* Y, const int C) {
    float sum = 0.0f;
    for (int c = 0; c < C; ++c) sum -= __bfloat162float(Y[c]) * std::log(std::fmax(__bfloat162float(X[c]), 1e-8f));
    loss[0] = sum;
}

// One plain loop.
#include <cmath>

extern "C" void hinge_loss_bf16(__nv_bfloat16* loss, const __nv_bfloat16* predictions, const int* targets, int N) {
    for (int i = 0; i < N; ++i) {
        const float y = targets[i] == 1 ? 1.0f : -1.0f;
        loss[i] = __float2bfloat16(std::fmax(0.0f, 1.0f - y * __bfloat162float(predictions[i])));
    }
}

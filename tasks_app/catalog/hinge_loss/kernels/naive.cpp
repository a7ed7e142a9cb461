// One plain loop.
#include <cmath>

extern "C" void hinge_loss(float* loss, const float* predictions, const int* targets, int N) {
    for (int i = 0; i < N; ++i) {
        const float y = targets[i] == 1 ? 1.0f : -1.0f;
        loss[i] = std::fmax(0.0f, 1.0f - y * predictions[i]);
    }
}

#include <cmath>

extern "C" void batched_cholesky(const float* matrices, float* factors, const int batch, const int n) {
    for (int b = 0; b < batch; ++b) {
        const float* a = matrices + (long)b * n * n;
        float* l = factors + (long)b * n * n;
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                float sum = a[i * n + j];
                for (int k = 0; k < j && j <= i; ++k) sum -= l[i * n + k] * l[j * n + k];
                l[i * n + j] = j > i ? 0.0f : j == i ? std::sqrt(sum) : sum / l[j * n + j];
            }
        }
    }
}

#include <cmath>
#include <vector>

// Householder's reflections, column by column. A reflection is I - v v^T / beta, with v of the column's sign.
extern "C" void batched_qr(const float* matrices, float* q, float* r, const int batch, const int m, const int n) {
    std::vector<float> a((size_t)m * n), betas(n), diagonal(n);
    for (int b = 0; b < batch; ++b) {
        for (size_t i = 0; i < a.size(); ++i) a[i] = matrices[b * a.size() + i];
        for (int k = 0; k < n; ++k) {
            float largest = 0.0f, squares = 0.0f;
            for (int i = k; i < m; ++i) largest = std::fmax(largest, std::fabs(a[(size_t)i * n + k]));
            betas[k] = 0.0f;
            diagonal[k] = 0.0f;
            if (largest == 0.0f) continue;
            for (int i = k; i < m; ++i) {
                const float part = a[(size_t)i * n + k] /= largest;
                squares += part * part;
            }
            const float length = std::copysign(std::sqrt(squares), a[(size_t)k * n + k]);
            diagonal[k] = -length * largest;
            betas[k] = squares + length * a[(size_t)k * n + k];
            a[(size_t)k * n + k] += length;
            for (int j = k + 1; j < n; ++j) {
                float sum = 0.0f;
                for (int i = k; i < m; ++i) sum += a[(size_t)i * n + k] * a[(size_t)i * n + j];
                for (int i = k; i < m; ++i) a[(size_t)i * n + j] -= sum / betas[k] * a[(size_t)i * n + k];
            }
        }
        float* own_q = q + (size_t)b * m * n;
        float* own_r = r + (size_t)b * n * n;
        for (int i = 0; i < m; ++i) {
            for (int j = 0; j < n; ++j) own_q[(size_t)i * n + j] = i == j ? (diagonal[j] < 0.0f ? -1.0f : 1.0f) : 0.0f;
        }
        for (int k = n - 1; k >= 0; --k) {
            for (int j = k; j < n && betas[k] != 0.0f; ++j) {
                float sum = 0.0f;
                for (int i = k; i < m; ++i) sum += a[(size_t)i * n + k] * own_q[(size_t)i * n + j];
                for (int i = k; i < m; ++i) own_q[(size_t)i * n + j] -= sum / betas[k] * a[(size_t)i * n + k];
            }
        }
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                const float above = diagonal[i] < 0.0f ? -a[(size_t)i * n + j] : a[(size_t)i * n + j];
                own_r[(size_t)i * n + j] = j > i ? above : j == i ? std::fabs(diagonal[i]) : 0.0f;
            }
        }
    }
}

#include <cmath>
#include <vector>

// Householder's reflections of the transposed matrix: columns are contiguous, so that sums and updates are
// vectors. Matrices are shared out among threads.
namespace {

float product(const float* a, const float* b, int count) {
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < count; ++i) sum += a[i] * b[i];
    return sum;
}

void reflect(const float* v, float* x, int count, float beta) {
    const float factor = product(v, x, count) / beta;
#pragma omp simd
    for (int i = 0; i < count; ++i) x[i] -= factor * v[i];
}

}  // namespace

extern "C" void batched_qr(const float* matrices, float* q, float* r, const int batch, const int m, const int n) {
#pragma omp parallel
    {
        std::vector<float> columns((size_t)n * m), result((size_t)n * m), betas(n), diagonal(n);
#pragma omp for schedule(static)
        for (int b = 0; b < batch; ++b) {
            const float* a = matrices + (size_t)b * m * n;
            for (int i = 0; i < m; ++i) {
                for (int j = 0; j < n; ++j) columns[(size_t)j * m + i] = a[(size_t)i * n + j];
            }
            for (int k = 0; k < n; ++k) {
                float* v = columns.data() + (size_t)k * m + k;
                float largest = 0.0f;
                for (int i = 0; i < m - k; ++i) largest = std::fmax(largest, std::fabs(v[i]));
                betas[k] = diagonal[k] = 0.0f;
                if (largest == 0.0f) continue;
                for (int i = 0; i < m - k; ++i) v[i] /= largest;
                const float squares = product(v, v, m - k), length = std::copysign(std::sqrt(squares), v[0]);
                diagonal[k] = -length * largest;
                betas[k] = squares + length * v[0];
                v[0] += length;
                for (int j = k + 1; j < n; ++j) reflect(v, columns.data() + (size_t)j * m + k, m - k, betas[k]);
            }
            for (int j = 0; j < n; ++j) {
                float* column = result.data() + (size_t)j * m;
                for (int i = 0; i < m; ++i) column[i] = 0.0f;
                column[j] = diagonal[j] < 0.0f ? -1.0f : 1.0f;
                for (int k = j; k >= 0; --k) {
                    if (betas[k] != 0.0f) reflect(columns.data() + (size_t)k * m + k, column + k, m - k, betas[k]);
                }
                for (int i = 0; i < m; ++i) q[((size_t)b * m + i) * n + j] = column[i];
            }
            for (int i = 0; i < n; ++i) {
                float* row = r + ((size_t)b * n + i) * n;
                for (int j = 0; j < i; ++j) row[j] = 0.0f;
                row[i] = std::fabs(diagonal[i]);
                for (int j = i + 1; j < n; ++j) {
                    const float above = columns[(size_t)j * m + i];
                    row[j] = diagonal[i] < 0.0f ? -above : above;
                }
            }
        }
    }
}

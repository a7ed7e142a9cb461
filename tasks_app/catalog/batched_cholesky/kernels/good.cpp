#include <cmath>
#include <cstring>

// Column by column, to the right: what a column takes from the columns behind it are whole rows, which
// the compiler makes vectors of. Matrices are shared out among threads; the factor stays in the cache.
extern "C" void batched_cholesky(const float* matrices, float* factors, const int batch, const int n) {
#pragma omp parallel for schedule(static)
    for (int b = 0; b < batch; ++b) {
        const float* a = matrices + (long)b * n * n;
        float* u = factors + (long)b * n * n;  // the upper factor first, whose rows are contiguous
        std::memcpy(u, a, sizeof(float) * n * n);
        for (int k = 0; k < n; ++k) {
            float* row = u + (long)k * n;
            const float root = std::sqrt(row[k]);
            for (int j = k; j < n; ++j) row[j] /= root;
            row[k] = root;
            for (int i = k + 1; i < n; ++i) {
                const float factor = row[i];
                float* below = u + (long)i * n;
#pragma omp simd
                for (int j = i; j < n; ++j) below[j] -= factor * row[j];
            }
        }
        for (int i = 0; i < n; ++i) {
            for (int j = i + 1; j < n; ++j) {
                u[(long)j * n + i] = u[(long)i * n + j];
                u[(long)i * n + j] = 0.0f;
            }
        }
    }
}

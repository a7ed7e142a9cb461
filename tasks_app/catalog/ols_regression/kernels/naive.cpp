// The normal equations, with X^T y as a last column, then elimination without pivoting and substitution.
#include <vector>

extern "C" void ols_regression(const float* X, const float* y, float* beta, int n_samples, int n_features) {
    const long p = n_features, width = p + 1;
    std::vector<float> equations(p * width, 0.0f);
    for (long k = 0; k < n_samples; ++k)
        for (long i = 0; i < p; ++i)
            for (long j = i; j <= p; ++j)
                equations[i * width + j] += X[k * p + i] * (j < p ? X[k * p + j] : y[k]);
    for (long k = 0; k < p; ++k) {
        const float* row = &equations[k * width];  // above the diagonal: X^T X is symmetric
        for (long i = k + 1; i < p; ++i)
            for (long j = i; j <= p; ++j) equations[i * width + j] -= row[i] / row[k] * row[j];
    }
    for (long k = p - 1; k >= 0; --k) {
        beta[k] = equations[k * width + p] / equations[k * width + k];
        for (long i = 0; i < k; ++i) equations[i * width + p] -= equations[i * width + k] * beta[k];
    }
}

// Zeros first; then each element of A adds its products to its row of Y.
extern "C" void spmm_coo(int row, int nnz, int K, const float* values, const int* row_indices, const int* col_indices,
                         const float* X, float* Y) {
    for (long long i = 0; i < (long long)row * K; ++i) Y[i] = 0.0f;
    for (int j = 0; j < nnz; ++j)
        for (int k = 0; k < K; ++k) Y[row_indices[j] * (long long)K + k] += values[j] * X[col_indices[j] * (long long)K + k];
}

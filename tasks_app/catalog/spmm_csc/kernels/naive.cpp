// Zeros first; then each column of A adds its products to Y.
extern "C" void spmm_csc(int rows, int columns, int K, const float* values, const int* row_indices, const int* col_offsets,
                         const float* X, float* Y) {
    for (long long i = 0; i < (long long)rows * K; ++i) Y[i] = 0.0f;
    for (int col = 0; col < columns; ++col)
        for (int j = col_offsets[col]; j < col_offsets[col + 1]; ++j)
            for (int k = 0; k < K; ++k) Y[row_indices[j] * (long long)K + k] += values[j] * X[col * (long long)K + k];
}

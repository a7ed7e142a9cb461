// One element of Y after the other.
extern "C" void spmm_csr(int rows, int K, const float* values, const int* col_indices, const int* row_offsets,
                         const float* X, float* Y) {
    for (long long row = 0; row < rows; ++row)
        for (long long k = 0; k < K; ++k) {
            float sum = 0.0f;
            for (int j = row_offsets[row]; j < row_offsets[row + 1]; ++j)
                sum += values[j] * X[col_indices[j] * (long long)K + k];
            Y[row * K + k] = sum;
        }
}

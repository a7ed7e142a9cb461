// One element of Y after the other.
extern "C" void spmm_ell(int rows, int max_nnz_per_row, int K, const float* values, const int* col_ids, const float* X,
                         float* Y) {
    for (long long row = 0; row < rows; ++row)
        for (long long k = 0; k < K; ++k) {
            const long long first = row * max_nnz_per_row;
            float sum = 0.0f;
            for (int j = 0; j < max_nnz_per_row; ++j) {
                const int col = col_ids[first + j];
                if (col != -1) sum += values[first + j] * X[col * (long long)K + k];
            }
            Y[row * K + k] = sum;
        }
}

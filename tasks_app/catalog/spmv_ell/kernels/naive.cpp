// One plain loop over the rows.
extern "C" void spmv_ell(int rows, int max_nnz_per_row, const float* values, const int* col_ids, const float* x, float* y) {
    for (int row = 0; row < rows; ++row) {
        const long long first = row * (long long)max_nnz_per_row;
        float sum = 0.0f;
        for (int i = 0; i < max_nnz_per_row; ++i) {
            const int col = col_ids[first + i];
            if (col != -1) sum += values[first + i] * x[col];
        }
        y[row] = sum;
    }
}

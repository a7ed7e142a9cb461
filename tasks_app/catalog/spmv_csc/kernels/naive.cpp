// Zeros first; then each column adds its products to their rows.
extern "C" void spmv_csc(int rows, int columns, const float* values, const int* row_indices, const int* col_offsets,
                         const float* x, float* y) {
    for (int row = 0; row < rows; ++row) y[row] = 0.0f;
    for (int col = 0; col < columns; ++col)
        for (int k = col_offsets[col]; k < col_offsets[col + 1]; ++k) y[row_indices[k]] += values[k] * x[col];
}

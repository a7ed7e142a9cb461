// One plain loop over the rows; sums in float32.
extern "C" void spmv_ell_bf16(int rows, int max_nnz_per_row, const __nv_bfloat16* values, const int* col_ids,
                              const __nv_bfloat16* x, __nv_bfloat16* y) {
    for (int row = 0; row < rows; ++row) {
        const long long first = row * (long long)max_nnz_per_row;
        float sum = 0.0f;
        for (int i = 0; i < max_nnz_per_row; ++i) {
            const int col = col_ids[first + i];
            if (col != -1) sum += __bfloat162float(values[first + i]) * __bfloat162float(x[col]);
        }
        y[row] = __float2bfloat16(sum);
    }
}

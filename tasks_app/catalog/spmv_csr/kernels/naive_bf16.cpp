// One plain loop over the rows; sums in float32.
extern "C" void spmv_csr_bf16(int rows, const __nv_bfloat16* values, const int* col_indices, const int* row_offsets,
                              const __nv_bfloat16* x, __nv_bfloat16* y) {
    for (int row = 0; row < rows; ++row) {
        float sum = 0.0f;
        for (int k = row_offsets[row]; k < row_offsets[row + 1]; ++k)
            sum += __bfloat162float(values[k]) * __bfloat162float(x[col_indices[k]]);
        y[row] = __float2bfloat16(sum);
    }
}

// One element of Y after the other; sums in float32.
extern "C" void spmm_csr_bf16(int rows, int K, const __nv_bfloat16* values, const int* col_indices, const int* row_offsets,
                         const __nv_bfloat16* X, __nv_bfloat16* Y) {
    for (long long row = 0; row < rows; ++row)
        for (long long k = 0; k < K; ++k) {
            float sum = 0.0f;
            for (int j = row_offsets[row]; j < row_offsets[row + 1]; ++j)
                sum += __bfloat162float(values[j]) * __bfloat162float(X[col_indices[j] * (long long)K + k]);
            Y[row * K + k] = __float2bfloat16(sum);
        }
}

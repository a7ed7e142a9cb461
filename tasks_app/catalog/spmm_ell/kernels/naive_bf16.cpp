// One element of Y after the other; sums in float32.
extern "C" void spmm_ell_bf16(int rows, int max_nnz_per_row, int K, const __nv_bfloat16* values, const int* col_ids, const __nv_bfloat16* X,
                         __nv_bfloat16* Y) {
    for (long long row = 0; row < rows; ++row)
        for (long long k = 0; k < K; ++k) {
            const long long first = row * max_nnz_per_row;
            float sum = 0.0f;
            for (int j = 0; j < max_nnz_per_row; ++j) {
                const int col = col_ids[first + j];
                if (col != -1) sum += __bfloat162float(values[first + j]) * __bfloat162float(X[col * (long long)K + k]);
            }
            Y[row * K + k] = __float2bfloat16(sum);
        }
}

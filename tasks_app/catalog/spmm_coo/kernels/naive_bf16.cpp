// As in FP32, but into sums in float32, which are rounded at the end.
#include <vector>

extern "C" void spmm_coo_bf16(int rows, int nnz, int K, const __nv_bfloat16* values, const int* row_indices, const int* col_indices,
                              const __nv_bfloat16* X, __nv_bfloat16* Y) {
    const long long size = (long long)rows * K;
    std::vector<float> sums(size, 0.0f);
    for (int j = 0; j < nnz; ++j)
        for (int k = 0; k < K; ++k)
            sums[row_indices[j] * (long long)K + k] += __bfloat162float(values[j]) * __bfloat162float(X[col_indices[j] * (long long)K + k]);
    for (long long i = 0; i < size; ++i) Y[i] = __float2bfloat16(sums[i]);
}

// As in FP32, but into sums in float32, which are rounded at the end.
#include <vector>

extern "C" void spmv_coo_bf16(int rows, int nnz, const __nv_bfloat16* values, const int* row_indices, const int* col_indices,
                              const __nv_bfloat16* x, __nv_bfloat16* y) {
    std::vector<float> sums(rows, 0.0f);
    for (int k = 0; k < nnz; ++k) sums[row_indices[k]] += __bfloat162float(values[k]) * __bfloat162float(x[col_indices[k]]);
    for (int row = 0; row < rows; ++row) y[row] = __float2bfloat16(sums[row]);
}

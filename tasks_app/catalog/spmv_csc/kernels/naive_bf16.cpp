// As in FP32, but into sums in float32, which are rounded at the end.
#include <vector>

extern "C" void spmv_csc_bf16(int rows, int columns, const __nv_bfloat16* values, const int* row_indices, const int* col_offsets,
                              const __nv_bfloat16* x, __nv_bfloat16* y) {
    std::vector<float> sums(rows, 0.0f);
    for (int col = 0; col < columns; ++col)
        for (int k = col_offsets[col]; k < col_offsets[col + 1]; ++k)
            sums[row_indices[k]] += __bfloat162float(values[k]) * __bfloat162float(x[col]);
    for (int row = 0; row < rows; ++row) y[row] = __float2bfloat16(sums[row]);
}

// Independent sums within a row; threads get equal shares of rows plus elements, not of rows.
#include <omp.h>

namespace {

constexpr long PARALLEL_FROM = 1L << 14;  // rows plus elements
constexpr int STREAMS = 4;                // independent sums, so that an addition does not wait for the last

float row_product(const float* __restrict__ values, const int* __restrict__ col_indices, const float* __restrict__ x, int n) {
    float sums[STREAMS] = {};
    int k = 0;
    for (; k + STREAMS <= n; k += STREAMS)
#pragma GCC unroll 8
        for (int s = 0; s < STREAMS; ++s) sums[s] += values[k + s] * x[col_indices[k + s]];
    float total = 0.0f;
    for (; k < n; ++k) total += values[k] * x[col_indices[k]];
#pragma GCC unroll 8
    for (int s = 0; s < STREAMS; ++s) total += sums[s];
    return total;
}

// The first row at which rows plus elements before it reach `share`.
int split(const int* row_offsets, int rows, long share) {
    int low = 0, high = rows;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (middle + static_cast<long>(row_offsets[middle]) < share)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

}  // namespace

extern "C" void spmv_csr(int rows, const float* values, const int* col_indices, const int* row_offsets, const float* x, float* y) {
    const long total = rows + static_cast<long>(row_offsets[rows]);
#pragma omp parallel if (total >= PARALLEL_FROM)
    {
        const int threads = omp_get_num_threads(), thread = omp_get_thread_num();
        const int begin = split(row_offsets, rows, total * thread / threads);
        const int end = thread + 1 == threads ? rows : split(row_offsets, rows, total * (thread + 1) / threads);
        for (int row = begin; row < end; ++row) {
            const int first = row_offsets[row];
            y[row] = row_product(values + first, col_indices + first, x, row_offsets[row + 1] - first);
        }
    }
}

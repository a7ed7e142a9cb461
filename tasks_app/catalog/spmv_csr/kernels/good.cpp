// Masked gathers, so that a short row's remainder is no branch to mispredict; threads get equal shares of rows plus
// elements, not of rows.
#include <omp.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace {

constexpr long PARALLEL_FROM = 1L << 16;  // rows plus elements

#if defined(__AVX512F__)

// Sum of the lanes. No reduce intrinsic: gcc 12 warns about its own header there.
float total(__m512 lanes) {
    typedef int Order __attribute__((vector_size(64)));
    lanes += __builtin_shuffle(lanes, Order{8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7});
    lanes += __builtin_shuffle(lanes, Order{4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11});
    lanes += __builtin_shuffle(lanes, Order{2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13});
    return lanes[0] + lanes[1];
}

float row_product(const float* values, const int* col_indices, const float* x, int n) {
    __m512 sums = _mm512_setzero_ps();
    for (int k = 0; k < n; k += 16) {
        const __mmask16 inside = n - k >= 16 ? 0xffff : static_cast<__mmask16>((1u << (n - k)) - 1);
        const __m512i columns = _mm512_maskz_loadu_epi32(inside, col_indices + k);
        const __m512 gathered = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), inside, columns, x, 4);
        sums = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(inside, values + k), gathered, sums);
    }
    return total(sums);
}

#else

float row_product(const float* values, const int* col_indices, const float* x, int n) {
    constexpr int STREAMS = 4;  // independent sums, so that an addition does not wait for the last
    float sums[STREAMS] = {};
    int k = 0;
    for (; k + STREAMS <= n; k += STREAMS)
        for (int s = 0; s < STREAMS; ++s) sums[s] += values[k + s] * x[col_indices[k + s]];
    float total = 0.0f;
    for (; k < n; ++k) total += values[k] * x[col_indices[k]];
    return total + ((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

#endif

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

// SUMS independent sums a row, or masked gathers of sixteen; threads over groups of rows.
// Correct for every combination of the declared values. Masked needs AVX-512, and does not compile without.
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace {

constexpr int SUMS = 1;  // knob: 1 2 4 8
// Elements ahead at which values and columns are asked for; 0: not at all.
constexpr int PREFETCH = 0;  // knob: 0 64 256 1024
// Rows that a thread takes at a time, and how.
constexpr int GROUP = 32;  // knob: 32 128 512
#define SCHEDULE static  // knob: static dynamic guided
// Rows from which a team of threads pays.
constexpr int PARALLEL_FROM = 1024;  // knob: 1024 4096 16384 65536

// SUMS at a time, and the rest one by one.
struct Plain {
    static float of(const float* values, const int* col_indices, const float* x, int n) {
        float sums[SUMS] = {};
        int k = 0;
        for (; k + SUMS <= n; k += SUMS)
#pragma GCC unroll 8
            for (int s = 0; s < SUMS; ++s) sums[s] += values[k + s] * x[col_indices[k + s]];
        float total = 0.0f;
        for (; k < n; ++k) total += values[k] * x[col_indices[k]];
        for (int s = 0; s < SUMS; ++s) total += sums[s];
        return total;
    }
};

// Sixteen at a time, the rest by a mask, so that a short row's end is no branch to mispredict. SUMS does not count.
struct Masked {
    template <class Value>
    static float of(const Value* values, const int* col_indices, const float* x, int n) {
#if defined(__AVX512F__)
        typedef int Order __attribute__((vector_size(64)));
        __m512 lanes = _mm512_setzero_ps();
        for (int k = 0; k < n; k += 16) {
            const __mmask16 inside = n - k >= 16 ? 0xffff : static_cast<__mmask16>((1u << (n - k)) - 1);
            const __m512i columns = _mm512_maskz_loadu_epi32(inside, col_indices + k);
            const __m512 gathered = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), inside, columns, x, 4);
            lanes = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(inside, values + k), gathered, lanes);
        }
        lanes += __builtin_shuffle(lanes, Order{8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7});
        lanes += __builtin_shuffle(lanes, Order{4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11});
        lanes += __builtin_shuffle(lanes, Order{2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13});
        return lanes[0] + lanes[1];
#else
        static_assert(sizeof(Value) == 0, "Masked needs a processor with AVX-512");
        return 0.0f;
#endif
    }
};

using Product = Plain;  // knob: Plain Masked

}  // namespace

extern "C" void spmv_csr(int rows, const float* values, const int* col_indices, const int* row_offsets, const float* x, float* y) {
#pragma omp parallel for schedule(SCHEDULE, GROUP) if (rows >= PARALLEL_FROM)
    for (int row = 0; row < rows; ++row) {
        const int first = row_offsets[row];
        if constexpr (PREFETCH > 0) {
            __builtin_prefetch(values + first + PREFETCH);
            __builtin_prefetch(col_indices + first + PREFETCH);
        }
        y[row] = Product::of(values + first, col_indices + first, x, row_offsets[row + 1] - first);
    }
}

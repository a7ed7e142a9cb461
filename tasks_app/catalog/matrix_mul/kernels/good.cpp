// Packed panels of A and B, a register tile of MR x NR sums, threads over the panels of A.
#include <algorithm>
#include <cstdlib>
#include <memory>

namespace {

#if defined(__AVX512F__)
constexpr int LANES = 16, MR = 12, NV = 2;  // 24 of 32 vector registers hold sums
#else
constexpr int LANES = 8, MR = 6, NV = 2;  // 12 of 16
#endif
constexpr int NR = NV * LANES;
constexpr int KC = 256;  // depth of a packed block: a panel of B stays in the first-level cache
constexpr int NC = 512;  // width of a packed block: the block stays in the second-level cache
constexpr long PARALLEL_FROM = 1L << 19;  // multiply-adds

typedef float Vector __attribute__((vector_size(LANES * sizeof(float)), may_alias));

struct Free {
    void operator()(float* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<float, Free>;

Buffer allocate(size_t floats) {
    const size_t bytes = (floats * sizeof(float) + 63) / 64 * 64;
    return Buffer(static_cast<float*>(std::aligned_alloc(64, bytes)));
}

// Columns [0, width) of a block of B, `depth` rows, as NR values a row; zeros beyond `width`.
void pack_b(float* __restrict__ out, const float* __restrict__ b, long stride, int depth, int width) {
    for (int k = 0; k < depth; ++k) {
        for (int j = 0; j < width; ++j) out[k * NR + j] = b[k * stride + j];
        for (int j = width; j < NR; ++j) out[k * NR + j] = 0.0f;
    }
}

// Rows [0, height) of a block of A, `depth` columns, as MR values a column; zeros beyond `height`.
void pack_a(float* __restrict__ out, const float* __restrict__ a, long stride, int depth, int height) {
    for (int i = 0; i < height; ++i)
        for (int k = 0; k < depth; ++k) out[k * MR + i] = a[i * stride + k];
    for (int i = height; i < MR; ++i)
        for (int k = 0; k < depth; ++k) out[k * MR + i] = 0.0f;
}

// C[0:height, 0:width] (+)= packed A x packed B.
void tile(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, long stride,
          int depth, int height, int width, bool first) {
    Vector sums[MR][NV] = {};
    for (int k = 0; k < depth; ++k) {
        const Vector* bv = reinterpret_cast<const Vector*>(b + k * NR);
#pragma GCC unroll 12
        for (int i = 0; i < MR; ++i)
#pragma GCC unroll 2
            for (int v = 0; v < NV; ++v) sums[i][v] += a[k * MR + i] * bv[v];
    }
    alignas(64) float out[MR][NR];
#pragma GCC unroll 12
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) *reinterpret_cast<Vector*>(&out[i][v * LANES]) = sums[i][v];
    for (int i = 0; i < height; ++i)
        for (int j = 0; j < width; ++j) c[i * stride + j] = first ? out[i][j] : c[i * stride + j] + out[i][j];
}

}  // namespace

extern "C" void matrix_mul(const float* A, const float* B, float* C, int M, int N, int K) {
    const bool parallel = static_cast<long>(M) * N * K >= PARALLEL_FROM;
    const int panels_a = (M + MR - 1) / MR;
    const Buffer packed_b = allocate(static_cast<size_t>(KC) * NC);
    const Buffer packed_a = allocate(static_cast<size_t>(panels_a) * MR * KC);
    for (int n0 = 0; n0 < N; n0 += NC) {
        const int panels_b = (std::min(NC, N - n0) + NR - 1) / NR;
        for (int k0 = 0; k0 < K; k0 += KC) {
            const int depth = std::min(KC, K - k0);
#pragma omp parallel if (parallel)
            {
#pragma omp for schedule(static) nowait
                for (int p = 0; p < panels_b; ++p) {
                    const int n = n0 + p * NR;
                    pack_b(packed_b.get() + static_cast<long>(p) * KC * NR, B + static_cast<long>(k0) * N + n, N, depth,
                           std::min(NR, N - n));
                }
#pragma omp for schedule(static)
                for (int p = 0; p < panels_a; ++p) {
                    const int m = p * MR;
                    pack_a(packed_a.get() + static_cast<long>(p) * KC * MR, A + static_cast<long>(m) * K + k0, K, depth,
                           std::min(MR, M - m));
                }
#pragma omp for schedule(static)
                for (int p = 0; p < panels_a; ++p)
                    for (int q = 0; q < panels_b; ++q) {
                        const int m = p * MR, n = n0 + q * NR;
                        tile(packed_a.get() + static_cast<long>(p) * KC * MR, packed_b.get() + static_cast<long>(q) * KC * NR,
                             C + static_cast<long>(m) * N + n, N, depth, std::min(MR, M - m), std::min(NR, N - n), k0 == 0);
                    }
            }
        }
    }
}

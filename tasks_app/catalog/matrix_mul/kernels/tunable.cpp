// A register tile of ROWS x (VECTORS * LANES) sums, over panels of B packed DEPTH rows at a time; threads over panels.
// Correct for every combination of the declared values; those whose sums exceed the vector registers spill and are slow.
#include <algorithm>

namespace {

// Floats of a vector; the compiler splits what the processor has not.
constexpr int LANES = 8;  // knob: 4 8 16
constexpr int ROWS = 2;  // knob: 1 2 4 6 8 12
constexpr int VECTORS = 1;  // knob: 1 2 3 4
constexpr int DEPTH = 32;  // knob: 32 64 128 256 512
// Steps of the depth that the innermost loop takes at once.
constexpr int UNROLL = 1;  // knob: 1 2 4
// Multiply-adds from which a team of threads pays.
constexpr long PARALLEL_FROM = 65536;  // knob: 65536 524288 4194304

constexpr int WIDTH = VECTORS * LANES;

typedef float Vector __attribute__((vector_size(LANES * sizeof(float)), may_alias));

// Columns [0, width) of `depth` rows of B, as WIDTH values a row; zeros beyond `width`.
void pack(float* __restrict__ panel, const float* __restrict__ b, long stride, int depth, int width) {
    for (int k = 0; k < depth; ++k)
        if (width == WIDTH)
            for (int j = 0; j < WIDTH; ++j) panel[k * WIDTH + j] = b[k * stride + j];
        else
            for (int j = 0; j < WIDTH; ++j) panel[k * WIDTH + j] = j < width ? b[k * stride + j] : 0.0f;
}

// C[0:height, 0:width] (+)= A[0:height, 0:depth] x panel. Rows beyond `height` repeat the last one and are not stored.
void tile(const float* __restrict__ a, long a_stride, const float* __restrict__ panel, float* __restrict__ c, long c_stride,
          int depth, int height, int width, bool first) {
    const float* rows[ROWS];
    for (int i = 0; i < ROWS; ++i) rows[i] = a + std::min(i, height - 1) * a_stride;
    Vector sums[ROWS][VECTORS] = {};
#pragma GCC unroll UNROLL
    for (int k = 0; k < depth; ++k) {
        const Vector* b = reinterpret_cast<const Vector*>(panel + k * WIDTH);
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; ++v) sums[i][v] += rows[i][k] * b[v];
    }
    alignas(64) float out[ROWS][WIDTH];
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; ++v) *reinterpret_cast<Vector*>(&out[i][v * LANES]) = sums[i][v];
    for (int i = 0; i < height; ++i)
        for (int j = 0; j < width; ++j) c[i * c_stride + j] = first ? out[i][j] : c[i * c_stride + j] + out[i][j];
}

}  // namespace

extern "C" void matrix_mul(const float* A, const float* B, float* C, int M, int N, int K) {
    const int panels = (N + WIDTH - 1) / WIDTH;
#pragma omp parallel for schedule(static) if (static_cast<long>(M) * N * K >= PARALLEL_FROM)
    for (int p = 0; p < panels; ++p) {
        alignas(64) float panel[DEPTH * WIDTH];
        const int n = p * WIDTH, width = std::min(WIDTH, N - n);
        for (int k0 = 0; k0 < K; k0 += DEPTH) {
            const int depth = std::min(DEPTH, K - k0);
            pack(panel, B + static_cast<long>(k0) * N + n, N, depth, width);
            for (int m = 0; m < M; m += ROWS)
                tile(A + static_cast<long>(m) * K + k0, K, panel, C + static_cast<long>(m) * N + n, N, depth,
                     std::min(ROWS, M - m), width, k0 == 0);
        }
    }
}

// Both matrices run along K: 4 x 4 inner products at a time share their loads, SIMD along K, threads over tiles.
#include <torch/extension.h>

#include <algorithm>

namespace {

#if defined(__AVX512F__)
constexpr int LANES = 16;
#else
constexpr int LANES = 8;
#endif
constexpr int ROWS = 4, COLS = 4;
constexpr long PARALLEL_FROM = 1L << 18;  // multiply-adds

typedef float Vector __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

float total(Vector v) {
    float sum = 0.0f;
    for (int l = 0; l < LANES; ++l) sum += v[l];
    return sum;
}

// sums[i][j] = x[i] . w[j] over K for R rows of x and C rows of w.
template <int R, int C>
void products(const float* __restrict__ x, const float* __restrict__ w, long K, float sums[ROWS][COLS]) {
    Vector acc[R][C] = {};
    long k = 0;
    for (; k + LANES <= K; k += LANES) {
        Vector a[R], b[C];
#pragma GCC unroll 4
        for (int i = 0; i < R; ++i) a[i] = *reinterpret_cast<const Vector*>(x + i * K + k);
#pragma GCC unroll 4
        for (int j = 0; j < C; ++j) b[j] = *reinterpret_cast<const Vector*>(w + j * K + k);
#pragma GCC unroll 4
        for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
            for (int j = 0; j < C; ++j) acc[i][j] += a[i] * b[j];
    }
    for (int i = 0; i < R; ++i)
        for (int j = 0; j < C; ++j) {
            float sum = total(acc[i][j]);
            for (long t = k; t < K; ++t) sum += x[i * K + t] * w[j * K + t];
            sums[i][j] = sum;
        }
}

void tile(const float* x, const float* w, long K, int rows, int cols, float sums[ROWS][COLS]) {
    if (rows == ROWS && cols == COLS) {
        products<ROWS, COLS>(x, w, K, sums);
        return;
    }
    float one[ROWS][COLS];
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < cols; ++j) {
            products<1, 1>(x + i * K, w + j * K, K, one);
            sums[i][j] = one[0][0];
        }
}

}  // namespace

torch::Tensor forward(torch::Tensor x, torch::Tensor weights, torch::Tensor biases) {
    const long M = x.size(0), K = x.size(1), N = weights.size(0);
    auto out = torch::empty({M, N}, x.options());
    const float *xp = x.data_ptr<float>(), *wp = weights.data_ptr<float>(), *bp = biases.data_ptr<float>();
    float* result = out.data_ptr<float>();
    const long row_tiles = (M + ROWS - 1) / ROWS, col_tiles = (N + COLS - 1) / COLS;
#pragma omp parallel for schedule(static) if (M * N * K >= PARALLEL_FROM)
    for (long t = 0; t < row_tiles * col_tiles; ++t) {
        const long m = t % row_tiles * ROWS, n = t / row_tiles * COLS;  // the rows of x stay cached, weights pass once
        const int rows = static_cast<int>(std::min<long>(ROWS, M - m)), cols = static_cast<int>(std::min<long>(COLS, N - n));
        float sums[ROWS][COLS];
        tile(xp + m * K, wp + n * K, K, rows, cols, sums);
        for (int i = 0; i < rows; ++i)
            for (int j = 0; j < cols; ++j) result[(m + i) * N + n + j] = std::max(sums[i][j] + bp[n + j], 0.0f);
    }
    return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }

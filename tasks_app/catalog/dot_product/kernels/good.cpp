// Four independent SIMD accumulators, so that an addition does not wait for the last one; threads for long vectors.
namespace {

constexpr int PARALLEL_FROM = 1 << 16;
constexpr int LANES = 16;
constexpr int STREAMS = 4;

float dot_range(const float* __restrict__ x, const float* __restrict__ y, int n) {
    float sums[STREAMS][LANES] = {};
    int i = 0;
    for (; i + STREAMS * LANES <= n; i += STREAMS * LANES)
        for (int s = 0; s < STREAMS; ++s)
#pragma omp simd
            for (int l = 0; l < LANES; ++l) sums[s][l] += x[i + s * LANES + l] * y[i + s * LANES + l];
    float total = 0.0f;
    for (; i < n; ++i) total += x[i] * y[i];
    for (int l = 0; l < LANES; ++l) total += (sums[0][l] + sums[1][l]) + (sums[2][l] + sums[3][l]);
    return total;
}

}  // namespace

extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
    if (N < PARALLEL_FROM) {
        loss[0] = dot_range(X, Y, N);
        return;
    }
    constexpr int CHUNK = 1 << 14;
    const int chunks = (N + CHUNK - 1) / CHUNK;
    float total = 0.0f;
#pragma omp parallel for schedule(static) reduction(+ : total)
    for (int c = 0; c < chunks; ++c) {
        const int low = c * CHUNK;
        const int n = N - low < CHUNK ? N - low : CHUNK;
        total += dot_range(X + low, Y + low, n);
    }
    loss[0] = total;
}

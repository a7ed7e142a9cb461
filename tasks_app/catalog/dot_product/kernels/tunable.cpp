// STREAMS x LANES independent sums; long vectors in chunks that threads share.
// Correct for every combination of the declared values.
#include <algorithm>

namespace {

// Sums that one addition of vectors takes.
constexpr int LANES = 1;  // knob: 1 4 8 16 32
// Such vectors in flight, so that an addition does not wait for the last.
constexpr int STREAMS = 1;  // knob: 1 2 4 8
// Elements that a thread takes at a time, and elements from which a team of threads pays.
constexpr int CHUNK = 1024;  // knob: 1024 4096 16384 65536
constexpr int PARALLEL_FROM = 4096;  // knob: 4096 65536 1048576
// Floats ahead at which both inputs are asked for; 0: not at all.
constexpr int PREFETCH = 0;  // knob: 0 64 256 1024

constexpr int STEP = STREAMS * LANES;

float dot_range(const float* __restrict__ x, const float* __restrict__ y, int n) {
    float sums[STREAMS][LANES] = {};
    int i = 0;
    for (; i + STEP <= n; i += STEP) {
        if constexpr (PREFETCH > 0)
            for (int s = 0; s < STEP; s += 16) {  // floats of a cache line
                __builtin_prefetch(x + i + s + PREFETCH);
                __builtin_prefetch(y + i + s + PREFETCH);
            }
#pragma GCC unroll 8
        for (int s = 0; s < STREAMS; ++s)
            for (int l = 0; l < LANES; ++l) sums[s][l] += x[i + s * LANES + l] * y[i + s * LANES + l];
    }
    float total = 0.0f;
    for (; i < n; ++i) total += x[i] * y[i];
    for (int l = 0; l < LANES; ++l)
        for (int s = 0; s < STREAMS; ++s) total += sums[s][l];
    return total;
}

}  // namespace

extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
    if (N < PARALLEL_FROM) {
        loss[0] = dot_range(X, Y, N);
        return;
    }
    const long chunks = (static_cast<long>(N) + CHUNK - 1) / CHUNK;
    float total = 0.0f;
#pragma omp parallel for schedule(static) reduction(+ : total)
    for (long chunk = 0; chunk < chunks; ++chunk) {
        const long low = chunk * CHUNK;
        total += dot_range(X + low, Y + low, static_cast<int>(std::min<long>(CHUNK, N - low)));
    }
    loss[0] = total;
}

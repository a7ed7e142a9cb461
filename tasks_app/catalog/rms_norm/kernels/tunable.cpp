// LANES independent sums of squares, then one pass that scales; long vectors in chunks that threads share.
// Correct for every combination of the declared values.
#include <algorithm>
#include <cmath>

namespace {

constexpr int LANES = 1;  // knob: 1 4 8 16 32 64 128
// Elements that a thread takes at a time, and elements from which a team of threads pays.
constexpr int CHUNK = 1024;  // knob: 256 1024 4096 16384
constexpr int PARALLEL_FROM = 1024;  // knob: 1024 8192 65536 1048576
// While summing, floats ahead at which the weights and the bias are asked for; 0: not at all.
constexpr int PREFETCH = 0;  // knob: 0 16 64 256

float sum_of_squares(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, int n) {
    float sums[LANES] = {};
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        if constexpr (PREFETCH > 0)
            for (int l = 0; l < LANES; l += 16) {  // floats of a cache line
                __builtin_prefetch(weight + i + l + PREFETCH);
                __builtin_prefetch(bias + i + l + PREFETCH);
            }
        for (int l = 0; l < LANES; ++l) sums[l] += x[i + l] * x[i + l];
    }
    float total = 0.0f;
    for (; i < n; ++i) total += x[i] * x[i];
    for (int l = 0; l < LANES; ++l) total += sums[l];
    return total;
}

void scale_and_shift(float* __restrict__ out, const float* __restrict__ x, const float* __restrict__ weight,
                     const float* __restrict__ bias, float scale, int n) {
    for (int i = 0; i < n; ++i) out[i] = x[i] * scale * weight[i] + bias[i];
}

}  // namespace

extern "C" void rms_norm(float* output, const float* input, const float* weight, const float* bias, const float epsilon, const int N) {
    if (N < PARALLEL_FROM) {
        const float sum = sum_of_squares(input, weight, bias, N);
        scale_and_shift(output, input, weight, bias, 1.0f / std::sqrt(sum / N + epsilon), N);
        return;
    }
    float sum = 0.0f;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long i = 0; i < N; i += CHUNK)
        sum += sum_of_squares(input + i, weight + i, bias + i, static_cast<int>(std::min<long>(CHUNK, N - i)));
    const float scale = 1.0f / std::sqrt(sum / N + epsilon);
#pragma omp parallel for schedule(static)
    for (long i = 0; i < N; i += CHUNK)
        scale_and_shift(output + i, input + i, weight + i, bias + i, scale, static_cast<int>(std::min<long>(CHUNK, N - i)));
}

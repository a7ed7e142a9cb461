// Independent SIMD sums, then one SIMD pass; threads for long vectors.
#include <cmath>

namespace {

constexpr int PARALLEL_FROM = 1 << 16;
constexpr int LANES = 32;  // sums in flight, enough to hide the latency of an addition

float sum_of_squares(const float* __restrict__ x, int n) {
    float sums[LANES] = {};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
#pragma omp simd
        for (int l = 0; l < LANES; ++l) sums[l] += x[i + l] * x[i + l];
    float total = 0.0f;
    for (; i < n; ++i) total += x[i] * x[i];
    for (int l = 0; l < LANES; ++l) total += sums[l];
    return total;
}

void scale_and_shift(float* __restrict__ out, const float* __restrict__ x, const float* __restrict__ weight,
                     const float* __restrict__ bias, float scale, int n) {
#pragma omp simd
    for (int i = 0; i < n; ++i) out[i] = x[i] * scale * weight[i] + bias[i];
}

}  // namespace

extern "C" void rms_norm(float* output, const float* input, const float* weight, const float* bias, const float epsilon, const int N) {
    if (N < PARALLEL_FROM) {
        scale_and_shift(output, input, weight, bias, 1.0f / std::sqrt(sum_of_squares(input, N) / N + epsilon), N);
        return;
    }
    constexpr int CHUNK = 1 << 14;
    const int chunks = (N + CHUNK - 1) / CHUNK;
    auto length = [N](int chunk) { return N - chunk * CHUNK < CHUNK ? N - chunk * CHUNK : CHUNK; };
    float sum = 0.0f;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int c = 0; c < chunks; ++c) sum += sum_of_squares(input + c * CHUNK, length(c));
    const float scale = 1.0f / std::sqrt(sum / N + epsilon);
#pragma omp parallel for schedule(static)
    for (int c = 0; c < chunks; ++c)
        scale_and_shift(output + c * CHUNK, input + c * CHUNK, weight + c * CHUNK, bias + c * CHUNK, scale, length(c));
}

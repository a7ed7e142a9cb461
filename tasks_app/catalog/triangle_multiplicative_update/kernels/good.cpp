#include <cmath>
#include <vector>

// Weights are widened and turned once, so that a projection adds up whole rows of them. Sums over triangles
// go channel by channel, which are contiguous. Rows of pairs are shared out among threads.
namespace {

// (rows, columns) from BF16, as (columns, rows).
std::vector<float> turned(const __nv_bfloat16* from, int rows, int columns) {
    std::vector<float> to((size_t)rows * columns);
    for (int r = 0; r < rows; ++r) {
        for (int c = 0; c < columns; ++c) to[(size_t)c * rows + r] = __bfloat162float(from[(size_t)r * columns + c]);
    }
    return to;
}

void project(const float* x, const std::vector<float>& weights, int count, int outputs, float* to) {
    for (int o = 0; o < outputs; ++o) to[o] = 0.0f;
    for (int c = 0; c < count; ++c) {
        const float* row = weights.data() + (size_t)c * outputs;
        const float factor = x[c];
#pragma omp simd
        for (int o = 0; o < outputs; ++o) to[o] += factor * row[o];
    }
}

void normalise(float* x, int count, const float* weight, const float* bias) {
    float sum = 0.0f, squares = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int c = 0; c < count; ++c) sum += x[c];
    const float mean = sum / count;
#pragma omp simd reduction(+ : squares)
    for (int c = 0; c < count; ++c) squares += (x[c] - mean) * (x[c] - mean);
    const float factor = 1.0f / std::sqrt(squares / count + 1e-5f);
#pragma omp simd
    for (int c = 0; c < count; ++c) x[c] = (x[c] - mean) * factor * weight[c] + bias[c];
}

float share(float gate) { return 1.0f / (1.0f + std::exp(-gate)); }

}  // namespace

extern "C" void triangle_multiplicative_update(const __nv_bfloat16* pairs, const __nv_bfloat16* norm_weight,
                                               const __nv_bfloat16* norm_bias, const __nv_bfloat16* in_weights,
                                               const __nv_bfloat16* out_norm_weight, const __nv_bfloat16* out_norm_bias,
                                               const __nv_bfloat16* out_weight, const __nv_bfloat16* gate_weight,
                                               __nv_bfloat16* out, const int num_tokens, const int channels,
                                               const int hidden) {
    const size_t n = num_tokens, count = n * n;
    const std::vector<float> in = turned(in_weights, 4 * hidden, channels), last = turned(out_weight, channels, hidden);
    const std::vector<float> gate = turned(gate_weight, channels, channels);
    const std::vector<float> weight = turned(norm_weight, 1, channels), bias = turned(norm_bias, 1, channels);
    const std::vector<float> out_w = turned(out_norm_weight, 1, hidden), out_b = turned(out_norm_bias, 1, hidden);
    std::vector<float> gates(count * channels), first(count * hidden), second(count * hidden);
#pragma omp parallel
    {
        std::vector<float> x(channels), inner(4 * hidden), sums(hidden), result(channels);
#pragma omp for schedule(static)
        for (size_t at = 0; at < count; ++at) {
            for (int c = 0; c < channels; ++c) x[c] = __bfloat162float(pairs[at * channels + c]);
            normalise(x.data(), channels, weight.data(), bias.data());
            project(x.data(), gate, channels, channels, gates.data() + at * channels);
            project(x.data(), in, channels, 4 * hidden, inner.data());
            for (int h = 0; h < hidden; ++h) {
                first[at * hidden + h] = share(inner[h]) * inner[hidden + h];
                second[at * hidden + h] = share(inner[2 * hidden + h]) * inner[3 * hidden + h];
            }
        }
#pragma omp for schedule(static)
        for (size_t at = 0; at < count; ++at) {
            const float *a = first.data() + at / n * n * hidden, *b = second.data() + at % n * n * hidden;
            for (int h = 0; h < hidden; ++h) sums[h] = 0.0f;
            for (size_t k = 0; k < n; ++k) {
                float* sum = sums.data();
#pragma omp simd
                for (int h = 0; h < hidden; ++h) sum[h] += a[k * hidden + h] * b[k * hidden + h];
            }
            normalise(sums.data(), hidden, out_w.data(), out_b.data());
            project(sums.data(), last, hidden, channels, result.data());
            for (int c = 0; c < channels; ++c) {
                out[at * channels + c] = __float2bfloat16(share(gates[at * channels + c]) * result[c]);
            }
        }
    }
}

#include <cmath>
#include <vector>

namespace {

float wide(__nv_bfloat16 value) { return __bfloat162float(value); }

float share(float gate) { return 1.0f / (1.0f + std::exp(-gate)); }

// In place: less the mean, over the deviation, times the weights, and the biases added.
void normalise(float* x, int count, const __nv_bfloat16* weight, const __nv_bfloat16* bias) {
    float mean = 0.0f, squares = 0.0f;
    for (int c = 0; c < count; ++c) mean += x[c] / count;
    for (int c = 0; c < count; ++c) squares += (x[c] - mean) * (x[c] - mean) / count;
    for (int c = 0; c < count; ++c) {
        x[c] = (x[c] - mean) / std::sqrt(squares + 1e-5f) * wide(weight[c]) + wide(bias[c]);
    }
}

float product(const float* x, const __nv_bfloat16* weights, int count) {
    float sum = 0.0f;
    for (int c = 0; c < count; ++c) sum += x[c] * wide(weights[c]);
    return sum;
}

}  // namespace

extern "C" void triangle_multiplicative_update(const __nv_bfloat16* pairs, const __nv_bfloat16* norm_weight,
                                               const __nv_bfloat16* norm_bias, const __nv_bfloat16* in_weights,
                                               const __nv_bfloat16* out_norm_weight, const __nv_bfloat16* out_norm_bias,
                                               const __nv_bfloat16* out_weight, const __nv_bfloat16* gate_weight,
                                               __nv_bfloat16* out, const int num_tokens, const int channels,
                                               const int hidden) {
    const long count = (long)num_tokens * num_tokens, own = (long)hidden * channels;
    std::vector<float> x(count * channels), first(count * hidden), second(count * hidden), sums(hidden);
    for (long at = 0; at < count; ++at) {
        float* row = x.data() + at * channels;
        for (int c = 0; c < channels; ++c) row[c] = wide(pairs[at * channels + c]);
        normalise(row, channels, norm_weight, norm_bias);
        for (int h = 0; h < hidden; ++h) {
            const __nv_bfloat16* w = in_weights + (long)h * channels;
            first[at * hidden + h] = share(product(row, w, channels)) * product(row, w + own, channels);
            second[at * hidden + h] = share(product(row, w + 2 * own, channels)) * product(row, w + 3 * own, channels);
        }
    }
    for (long i = 0; i < num_tokens; ++i) {
        for (long j = 0; j < num_tokens; ++j) {
            for (int h = 0; h < hidden; ++h) {
                sums[h] = 0.0f;
                for (long k = 0; k < num_tokens; ++k) {
                    sums[h] += first[(i * num_tokens + k) * hidden + h] * second[(j * num_tokens + k) * hidden + h];
                }
            }
            normalise(sums.data(), hidden, out_norm_weight, out_norm_bias);
            const long at = (i * num_tokens + j) * channels;
            for (int c = 0; c < channels; ++c) {
                const float gate = share(product(x.data() + at, gate_weight + (long)c * channels, channels));
                out[at + c] = __float2bfloat16(gate * product(sums.data(), out_weight + (long)c * hidden, hidden));
            }
        }
    }
}

// For each token and head: all scores, their softmax, and the weighted sum of the values.
#include <algorithm>
#include <cmath>
#include <vector>

extern "C" void multi_head_attention_bf16(const __nv_bfloat16* Q, const __nv_bfloat16* K, const __nv_bfloat16* V, __nv_bfloat16* output,
                                          int N, int d_model, int h) {
    const int d = d_model / h;
    std::vector<float> weights(N), result(d);
    for (long token = 0; token < N; ++token) {
        for (long head = 0; head < d_model; head += d) {
            const __nv_bfloat16* query = Q + token * d_model + head;
            float largest = -INFINITY, sum = 0.0f;
            for (long n = 0; n < N; ++n) {
                const __nv_bfloat16* key = K + n * d_model + head;
                float score = 0.0f;
                for (int c = 0; c < d; ++c) score += __bfloat162float(query[c]) * __bfloat162float(key[c]);
                weights[n] = score / std::sqrt((float)d);
                largest = std::max(largest, weights[n]);
            }
            std::fill(result.begin(), result.end(), 0.0f);
            for (long n = 0; n < N; ++n) {
                const float weight = std::exp(weights[n] - largest);
                sum += weight;
                for (int c = 0; c < d; ++c) result[c] += weight * __bfloat162float(V[n * d_model + head + c]);
            }
            for (int c = 0; c < d; ++c) output[token * d_model + head + c] = __float2bfloat16(result[c] / sum);
        }
    }
}

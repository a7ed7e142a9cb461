// A query at a time. Keys come in tiles: the scores, then the weights, then sums over V, which shrink whenever a larger score appears.
#include <algorithm>
#include <cmath>
#include <vector>

using bf16 = __nv_bfloat16;

constexpr int TILE = 64;

static void attend(bf16* y, const bf16* query, const bf16* K, const bf16* V, int keys, int dim_qk, int dim_v, float scale,
                   float* sums) {
    float scores[TILE], total = 0.0f, largest = -INFINITY;
    std::fill(sums, sums + dim_v, 0.0f);
    for (long long start = 0; start < keys; start += TILE) {
        const int count = (int)std::min<long long>(TILE, keys - start);
        float peak = largest;
        for (int k = 0; k < count; ++k) {
            const bf16* key = K + (start + k) * dim_qk;
            float score = 0.0f;
            for (int c = 0; c < dim_qk; ++c) score += __bfloat162float(query[c]) * __bfloat162float(key[c]);
            scores[k] = score * scale;
            peak = std::max(peak, scores[k]);
        }
        const float shrink = std::exp(largest - peak);
        largest = peak;
        total *= shrink;
        for (int c = 0; c < dim_v; ++c) sums[c] *= shrink;
        for (int k = 0; k < count; ++k) {
            const bf16* value = V + (start + k) * dim_v;
            const float weight = std::exp(scores[k] - peak);
            total += weight;
            for (int c = 0; c < dim_v; ++c) sums[c] += weight * __bfloat162float(value[c]);
        }
    }
    for (int c = 0; c < dim_v; ++c) y[c] = __float2bfloat16(sums[c] / total);
}

extern "C" void softmax_attention_bf16(bf16* Y, const bf16* Q, const bf16* K, const bf16* V, int q_seq_len, int kv_seq_len, int dim_qk,
                                  int dim_v) {
    std::vector<float> sums(dim_v);
    const float scale = 1.0f / std::sqrt((float)dim_qk);
    for (long long q = 0; q < q_seq_len; ++q)
        attend(Y + q * dim_v, Q + q * dim_qk, K, V, kv_seq_len, dim_qk, dim_v, scale, sums.data());
}

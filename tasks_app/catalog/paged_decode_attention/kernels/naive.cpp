#include <cmath>
#include <vector>

extern "C" void paged_decode_attention(const __nv_bfloat16* query, const __nv_bfloat16* key_cache,
                                       const __nv_bfloat16* value_cache, const int* page_table, const int* lengths,
                                       __nv_bfloat16* out, const int batch, const int num_heads, const int num_kv_heads,
                                       const int head_dim, const int page_size, const int max_pages) {
    std::vector<float> scores, sums(head_dim);
    for (int b = 0; b < batch; ++b) {
        scores.resize(lengths[b]);
        for (int h = 0; h < num_heads; ++h) {
            const long own = h / (num_heads / num_kv_heads), at = ((long)b * num_heads + h) * head_dim;
            auto row = [&](int t) {
                const long page = page_table[(long)b * max_pages + t / page_size];
                return ((page * page_size + t % page_size) * num_kv_heads + own) * head_dim;
            };
            float largest = -INFINITY, total = 0.0f;
            for (int t = 0; t < lengths[b]; ++t) {
                float sum = 0.0f;
                for (int d = 0; d < head_dim; ++d) {
                    sum += __bfloat162float(query[at + d]) * __bfloat162float(key_cache[row(t) + d]);
                }
                scores[t] = sum / std::sqrt((float)head_dim);
                largest = std::fmax(largest, scores[t]);
            }
            std::fill(sums.begin(), sums.end(), 0.0f);
            for (int t = 0; t < lengths[b]; ++t) {
                const float weight = std::exp(scores[t] - largest);
                total += weight;
                for (int d = 0; d < head_dim; ++d) sums[d] += weight * __bfloat162float(value_cache[row(t) + d]);
            }
            for (int d = 0; d < head_dim; ++d) out[at + d] = __float2bfloat16(sums[d] / total);
        }
    }
}

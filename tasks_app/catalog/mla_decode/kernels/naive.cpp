#include <cmath>
#include <vector>

extern "C" void mla_decode(const __nv_bfloat16* query, const __nv_bfloat16* cache, const int* page_table,
                           const int* lengths, __nv_bfloat16* out, const int batch, const int num_heads,
                           const int latent_dim, const int rope_dim, const int page_size, const int max_pages,
                           const float scale) {
    const int width = latent_dim + rope_dim;
    std::vector<float> scores, sums(latent_dim);
    for (int b = 0; b < batch; ++b) {
        scores.resize(lengths[b]);
        auto row = [&](int t) {
            const long page = page_table[(long)b * max_pages + t / page_size];
            return (page * page_size + t % page_size) * width;
        };
        for (int h = 0; h < num_heads; ++h) {
            const long at = (long)b * num_heads + h;
            float largest = -INFINITY, total = 0.0f;
            for (int t = 0; t < lengths[b]; ++t) {
                float sum = 0.0f;
                for (int d = 0; d < width; ++d) {
                    sum += __bfloat162float(query[at * width + d]) * __bfloat162float(cache[row(t) + d]);
                }
                scores[t] = sum * scale;
                largest = std::fmax(largest, scores[t]);
            }
            std::fill(sums.begin(), sums.end(), 0.0f);
            for (int t = 0; t < lengths[b]; ++t) {
                const float weight = std::exp(scores[t] - largest);
                total += weight;
                for (int d = 0; d < latent_dim; ++d) sums[d] += weight * __bfloat162float(cache[row(t) + d]);
            }
            for (int d = 0; d < latent_dim; ++d) out[at * latent_dim + d] = __float2bfloat16(sums[d] / total);
        }
    }
}

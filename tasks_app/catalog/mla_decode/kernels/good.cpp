#include <algorithm>
#include <cmath>
#include <vector>

// A thread takes a sequence and up to sixteen heads: each token is widened once for all of them, and serves
// as key and as value. The softmax goes on page by page, and what was summed is made smaller when a larger
// score comes.
namespace {

constexpr int kHeads = 16;

void widen(const __nv_bfloat16* from, float* to, int count) {
    for (int i = 0; i < count; ++i) to[i] = __bfloat162float(from[i]);
}

}  // namespace

extern "C" void mla_decode(const __nv_bfloat16* query, const __nv_bfloat16* cache, const int* page_table,
                           const int* lengths, __nv_bfloat16* out, const int batch, const int num_heads,
                           const int latent_dim, const int rope_dim, const int page_size, const int max_pages,
                           const float scale) {
    const int width = latent_dim + rope_dim;
#pragma omp parallel
    {
        std::vector<float> q((size_t)kHeads * width), sums((size_t)kHeads * latent_dim), rows((size_t)page_size * width);
        std::vector<float> scores(page_size);
#pragma omp for collapse(2) schedule(dynamic)
        for (int b = 0; b < batch; ++b) {
            for (int first = 0; first < num_heads; first += kHeads) {
                const int heads = std::min(kHeads, num_heads - first);
                const size_t at = (size_t)b * num_heads + first;
                float largest[kHeads], total[kHeads] = {};
                std::fill(largest, largest + kHeads, -INFINITY);
                std::fill(sums.begin(), sums.end(), 0.0f);
                widen(query + at * width, q.data(), heads * width);
                for (int begin = 0; begin < lengths[b]; begin += page_size) {
                    const int count = std::min(page_size, lengths[b] - begin);
                    const size_t page = page_table[(size_t)b * max_pages + begin / page_size];
                    widen(cache + page * page_size * width, rows.data(), count * width);
                    for (int h = 0; h < heads; ++h) {
                        float most = largest[h];
                        for (int t = 0; t < count; ++t) {
                            const float *a = q.data() + (size_t)h * width, *k = rows.data() + (size_t)t * width;
                            float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
                            for (int d = 0; d < width; ++d) sum += a[d] * k[d];
                            scores[t] = sum * scale;
                            most = std::max(most, scores[t]);
                        }
                        const float less = std::exp(largest[h] - most);
                        float* own = sums.data() + (size_t)h * latent_dim;
                        largest[h] = most;
                        total[h] *= less;
                        for (int d = 0; d < latent_dim; ++d) own[d] *= less;
                        for (int t = 0; t < count; ++t) {
                            const float weight = std::exp(scores[t] - most);
                            const float* v = rows.data() + (size_t)t * width;
                            total[h] += weight;
                            for (int d = 0; d < latent_dim; ++d) own[d] += weight * v[d];
                        }
                    }
                }
                for (int h = 0; h < heads; ++h) {
                    for (int d = 0; d < latent_dim; ++d) {
                        out[(at + h) * latent_dim + d] = __float2bfloat16(sums[(size_t)h * latent_dim + d] / total[h]);
                    }
                }
            }
        }
    }
}

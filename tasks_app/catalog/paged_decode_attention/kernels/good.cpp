#include <algorithm>
#include <cmath>
#include <vector>

// A thread takes a sequence and a head of keys: each key and value is widened once, for all queries of the
// group. The softmax goes on page by page, and what was summed is made smaller when a larger score comes.
namespace {

void widen(const __nv_bfloat16* from, float* to, int count) {
    for (int i = 0; i < count; ++i) to[i] = __bfloat162float(from[i]);
}

}  // namespace

extern "C" void paged_decode_attention(const __nv_bfloat16* query, const __nv_bfloat16* key_cache,
                                       const __nv_bfloat16* value_cache, const int* page_table, const int* lengths,
                                       __nv_bfloat16* out, const int batch, const int num_heads, const int num_kv_heads,
                                       const int head_dim, const int page_size, const int max_pages) {
    const int group = num_heads / num_kv_heads;
    const float root = 1.0f / std::sqrt((float)head_dim);
#pragma omp parallel
    {
        std::vector<float> q((size_t)group * head_dim), sums(q.size()), row(head_dim);
        std::vector<float> scores((size_t)group * page_size), largest(group), total(group);
#pragma omp for collapse(2) schedule(dynamic)
        for (int b = 0; b < batch; ++b) {
            for (int own = 0; own < num_kv_heads; ++own) {
                const size_t at = ((size_t)b * num_heads + (size_t)own * group) * head_dim;
                widen(query + at, q.data(), group * head_dim);
                std::fill(sums.begin(), sums.end(), 0.0f);
                std::fill(largest.begin(), largest.end(), -INFINITY);
                std::fill(total.begin(), total.end(), 0.0f);
                for (int begin = 0; begin < lengths[b]; begin += page_size) {
                    const int count = std::min(page_size, lengths[b] - begin);
                    const size_t page = page_table[(size_t)b * max_pages + begin / page_size];
                    const size_t first = (page * page_size * num_kv_heads + own) * head_dim;
                    const size_t step = (size_t)num_kv_heads * head_dim;
                    for (int t = 0; t < count; ++t) {
                        widen(key_cache + first + t * step, row.data(), head_dim);
                        for (int g = 0; g < group; ++g) {
                            float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
                            for (int d = 0; d < head_dim; ++d) sum += q[(size_t)g * head_dim + d] * row[d];
                            scores[(size_t)g * page_size + t] = sum * root;
                        }
                    }
                    for (int g = 0; g < group; ++g) {
                        float* s = scores.data() + (size_t)g * page_size;
                        const float most = std::max(largest[g], *std::max_element(s, s + count));
                        const float less = std::exp(largest[g] - most);
                        largest[g] = most;
                        total[g] *= less;
                        for (int d = 0; d < head_dim; ++d) sums[(size_t)g * head_dim + d] *= less;
                        for (int t = 0; t < count; ++t) total[g] += s[t] = std::exp(s[t] - most);
                    }
                    for (int t = 0; t < count; ++t) {
                        widen(value_cache + first + t * step, row.data(), head_dim);
                        for (int g = 0; g < group; ++g) {
                            const float weight = scores[(size_t)g * page_size + t];
                            for (int d = 0; d < head_dim; ++d) sums[(size_t)g * head_dim + d] += weight * row[d];
                        }
                    }
                }
                for (int g = 0; g < group; ++g) {
                    for (int d = 0; d < head_dim; ++d) {
                        const size_t i = (size_t)g * head_dim + d;
                        out[at + i] = __float2bfloat16(sums[i] / total[g]);
                    }
                }
            }
        }
    }
}

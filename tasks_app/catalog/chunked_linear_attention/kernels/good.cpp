#include <algorithm>
#include <cmath>
#include <vector>

// A thread takes a head. The state's rows are vectors, and stay in the cache: each is made smaller, added to
// and read in one pass a token.
extern "C" void chunked_linear_attention(const __nv_bfloat16* query, const __nv_bfloat16* key,
                                         const __nv_bfloat16* value, const float* log_decay, __nv_bfloat16* out,
                                         const int batch, const int num_tokens, const int num_heads, const int key_dim,
                                         const int value_dim) {
#pragma omp parallel
    {
        std::vector<float> state((size_t)key_dim * value_dim), v(value_dim), sums(value_dim);
#pragma omp for collapse(2) schedule(static)
        for (int b = 0; b < batch; ++b) {
            for (int h = 0; h < num_heads; ++h) {
                std::fill(state.begin(), state.end(), 0.0f);
                for (int t = 0; t < num_tokens; ++t) {
                    const size_t at = ((size_t)b * num_tokens + t) * num_heads + h;
                    const float decay = std::exp(log_decay[at]);
                    for (int j = 0; j < value_dim; ++j) v[j] = __bfloat162float(value[at * value_dim + j]);
                    std::fill(sums.begin(), sums.end(), 0.0f);
                    for (int i = 0; i < key_dim; ++i) {
                        const float k = __bfloat162float(key[at * key_dim + i]);
                        const float q = __bfloat162float(query[at * key_dim + i]);
                        float *row = state.data() + (size_t)i * value_dim, *sum = sums.data();
                        const float* added = v.data();
#pragma omp simd
                        for (int j = 0; j < value_dim; ++j) {
                            row[j] = row[j] * decay + k * added[j];
                            sum[j] += q * row[j];
                        }
                    }
                    for (int j = 0; j < value_dim; ++j) out[at * value_dim + j] = __float2bfloat16(sums[j]);
                }
            }
        }
    }
}

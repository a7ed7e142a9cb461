#include <cmath>
#include <vector>

extern "C" void chunked_linear_attention(const __nv_bfloat16* query, const __nv_bfloat16* key,
                                         const __nv_bfloat16* value, const float* log_decay, __nv_bfloat16* out,
                                         const int batch, const int num_tokens, const int num_heads, const int key_dim,
                                         const int value_dim) {
    std::vector<float> state((size_t)key_dim * value_dim);
    for (int b = 0; b < batch; ++b) {
        for (int h = 0; h < num_heads; ++h) {
            std::fill(state.begin(), state.end(), 0.0f);
            for (int t = 0; t < num_tokens; ++t) {
                const size_t at = ((size_t)b * num_tokens + t) * num_heads + h;
                const float decay = std::exp(log_decay[at]);
                for (int j = 0; j < value_dim; ++j) {
                    const float v = __bfloat162float(value[at * value_dim + j]);
                    float sum = 0.0f;
                    for (int i = 0; i < key_dim; ++i) {
                        float& element = state[(size_t)i * value_dim + j];
                        element = element * decay + __bfloat162float(key[at * key_dim + i]) * v;
                        sum += __bfloat162float(query[at * key_dim + i]) * element;
                    }
                    out[at * value_dim + j] = __float2bfloat16(sum);
                }
            }
        }
    }
}

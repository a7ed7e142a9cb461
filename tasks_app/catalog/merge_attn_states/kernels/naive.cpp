// One loop over the states, and one over the elements of each.
#include <cmath>

extern "C" void merge_attn_states(float* V_out, float* LSE_out, const float* V_a, const float* lse_a, const float* V_b, const float* lse_b,
                                  int num_tokens, int num_heads, int head_size) {
    for (long long token = 0; token < num_tokens; ++token) {
        for (long long head = 0; head < num_heads; ++head) {
            const long long state = head * num_tokens + token, start = (token * num_heads + head) * head_size;
            const float lse_first = lse_a[state], lse_second = lse_b[state];
            const float first = std::isinf(lse_first) ? -INFINITY : lse_first, second = std::isinf(lse_second) ? -INFINITY : lse_second;
            const float larger = std::fmax(first, second);
            const float largest = std::isinf(larger) ? 0.0f : larger;
            const float p = std::exp(first - largest), s = std::exp(second - largest), total = p + s;
            const float weight = total > 0.0f ? 1.0f / total : 0.0f;  // 0 where both states are empty
            for (long long i = start; i < start + head_size; ++i)
                V_out[i] = (p * weight) * V_a[i] + (s * weight) * V_b[i];
            LSE_out[state] = largest + std::log(total);
        }
    }
}

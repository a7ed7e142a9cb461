// One thread an element of the vectors; the first of each vector also writes its LSE.
#include <cuda_runtime.h>

__global__ void merge_elements(float* V_out, float* LSE_out, const float* V_a, const float* lse_a, const float* V_b, const float* lse_b,
                               long long count, int num_tokens, int num_heads, int head_size) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= count) return;
    const long long token = i / head_size / num_heads, head = i / head_size % num_heads;
    const long long state = head * num_tokens + token;
    const float lse_first = lse_a[state], lse_second = lse_b[state];
    const float first = isinf(lse_first) ? -INFINITY : lse_first, second = isinf(lse_second) ? -INFINITY : lse_second;
    const float larger = fmaxf(first, second);
    const float largest = isinf(larger) ? 0.0f : larger;
    const float p = expf(first - largest), s = expf(second - largest), total = p + s;

    const float weight = total > 0.0f ? 1.0f / total : 0.0f;  // 0 where both states are empty
    V_out[i] = (p * weight) * V_a[i] + (s * weight) * V_b[i];
    if (i % head_size == 0) LSE_out[state] = largest + logf(total);
}

extern "C" void merge_attn_states(float* V_out, float* LSE_out, const float* V_a, const float* lse_a, const float* V_b, const float* lse_b,
                                  int num_tokens, int num_heads, int head_size) {
    const int threads = 256;
    const long long count = (long long)num_tokens * num_heads * head_size;
    const unsigned blocks = (unsigned)((count + threads - 1) / threads);
    merge_elements<<<blocks, threads>>>(V_out, LSE_out, V_a, lse_a, V_b, lse_b, count, num_tokens, num_heads, head_size);
}

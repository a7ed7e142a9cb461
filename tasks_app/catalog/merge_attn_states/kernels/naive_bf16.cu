// One thread an element of the vectors; the first of each vector also writes its LSE.
#include <cuda_bf16.h>

using bf16 = __nv_bfloat16;

__global__ void merge_elements(bf16* V_out, bf16* LSE_out, const bf16* V_a, const bf16* lse_a, const bf16* V_b, const bf16* lse_b,
                               long long count, int num_tokens, int num_heads, int head_size) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= count) return;
    const long long token = i / head_size / num_heads, head = i / head_size % num_heads;
    const long long state = head * num_tokens + token;
    const float lse_first = __bfloat162float(lse_a[state]), lse_second = __bfloat162float(lse_b[state]);
    const float first = isinf(lse_first) ? -INFINITY : lse_first, second = isinf(lse_second) ? -INFINITY : lse_second;
    const float larger = fmaxf(first, second);
    const float largest = isinf(larger) ? 0.0f : larger;
    const float p = expf(first - largest), s = expf(second - largest), total = p + s;

    const float weight = total > 0.0f ? 1.0f / total : 0.0f;  // 0 where both states are empty
    V_out[i] = __float2bfloat16((p * weight) * __bfloat162float(V_a[i]) + (s * weight) * __bfloat162float(V_b[i]));
    if (i % head_size == 0) LSE_out[state] = __float2bfloat16(largest + logf(total));
}

extern "C" void merge_attn_states_bf16(bf16* V_out, bf16* LSE_out, const bf16* V_a, const bf16* lse_a, const bf16* V_b, const bf16* lse_b,
                                  int num_tokens, int num_heads, int head_size) {
    const int threads = 256;
    const long long count = (long long)num_tokens * num_heads * head_size;
    const unsigned blocks = (unsigned)((count + threads - 1) / threads);
    merge_elements<<<blocks, threads>>>(V_out, LSE_out, V_a, lse_a, V_b, lse_b, count, num_tokens, num_heads, head_size);
}

#include <cuda_runtime.h>

// One block a head and 32 columns of its state. A lane has a column, and each warp every eighth row of it in
// registers; a token is one step. Warps' sums are put together once for a number of tokens.
constexpr int kWarps = 8, kMost = 32, kSteps = 16;  // up to kWarps * kMost rows

__global__ void attend(const __nv_bfloat16* query, const __nv_bfloat16* key, const __nv_bfloat16* value,
                       const float* log_decay, __nv_bfloat16* out, int num_tokens, int num_heads, int key_dim,
                       int value_dim) {
    __shared__ float sums[kSteps][kWarps][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = blockIdx.y * 32 + lane;
    const int b = blockIdx.x / num_heads, head = blockIdx.x % num_heads;
    float state[kMost] = {};
    for (int begin = 0; begin < num_tokens; begin += kSteps) {
        const int steps = min(kSteps, num_tokens - begin);
        for (int s = 0; s < steps; ++s) {
            const size_t at = ((size_t)b * num_tokens + begin + s) * num_heads + head;
            const float decay = expf(log_decay[at]);
            const float v = column < value_dim ? __bfloat162float(value[at * value_dim + column]) : 0.0f;
            float sum = 0.0f;
            for (int r = 0; r < kMost; ++r) {
                const int i = r * kWarps + warp;
                if (i >= key_dim) break;
                state[r] = state[r] * decay + __bfloat162float(key[at * key_dim + i]) * v;
                sum += __bfloat162float(query[at * key_dim + i]) * state[r];
            }
            sums[s][warp][lane] = sum;
        }
        __syncthreads();
        for (int s = warp; s < steps; s += kWarps) {
            const size_t at = ((size_t)b * num_tokens + begin + s) * num_heads + head;
            float sum = 0.0f;
            for (int w = 0; w < kWarps; ++w) sum += sums[s][w][lane];
            if (column < value_dim) out[at * value_dim + column] = __float2bfloat16(sum);
        }
        __syncthreads();
    }
}

extern "C" void chunked_linear_attention(const __nv_bfloat16* query, const __nv_bfloat16* key,
                                         const __nv_bfloat16* value, const float* log_decay, __nv_bfloat16* out,
                                         const int batch, const int num_tokens, const int num_heads, const int key_dim,
                                         const int value_dim) {
    const dim3 blocks(batch * num_heads, (value_dim + 31) / 32);
    attend<<<blocks, 32 * kWarps>>>(query, key, value, log_decay, out, num_tokens, num_heads, key_dim, value_dim);
}

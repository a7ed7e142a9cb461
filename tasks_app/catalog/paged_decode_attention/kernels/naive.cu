#include <cuda_runtime.h>

// One block a query. Each of its warps takes every eighth token, with a softmax of its own that goes on as
// scores come; the lanes share a row's elements. In the end the warps' sums are put together.
constexpr int kWarps = 8, kMost = 8;  // up to 32 * kMost elements a row are kept in registers

__global__ void attend(const __nv_bfloat16* query, const __nv_bfloat16* key_cache, const __nv_bfloat16* value_cache,
                       const int* page_table, const int* lengths, __nv_bfloat16* out, int num_heads, int num_kv_heads,
                       int head_dim, int page_size, int max_pages) {
    __shared__ float sums[kWarps][32 * kMost], largest[kWarps], total[kWarps];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int b = blockIdx.x / num_heads, head = blockIdx.x % num_heads;
    const int own = head / (num_heads / num_kv_heads);
    const float root = rsqrtf((float)head_dim);
    float q[kMost], mine[kMost], most = -INFINITY, weights = 0.0f;
    for (int i = 0; i < kMost; ++i) {
        const int d = lane + 32 * i;
        q[i] = d < head_dim ? __bfloat162float(query[(size_t)blockIdx.x * head_dim + d]) * root : 0.0f;
        mine[i] = 0.0f;
    }
    for (int t = warp; t < lengths[b]; t += kWarps) {
        const size_t page = page_table[(size_t)b * max_pages + t / page_size];
        const size_t row = ((page * page_size + t % page_size) * num_kv_heads + own) * head_dim;
        float score = 0.0f;
        for (int i = 0; i < kMost && lane + 32 * i < head_dim; ++i) {
            score += q[i] * __bfloat162float(key_cache[row + lane + 32 * i]);
        }
        for (int half = 16; half > 0; half /= 2) score += __shfl_xor_sync(0xFFFFFFFFu, score, half);
        const float larger = fmaxf(most, score), less = expf(most - larger), weight = expf(score - larger);
        most = larger;
        weights = weights * less + weight;
        for (int i = 0; i < kMost && lane + 32 * i < head_dim; ++i) {
            mine[i] = mine[i] * less + weight * __bfloat162float(value_cache[row + lane + 32 * i]);
        }
    }
    for (int i = 0; i < kMost; ++i) sums[warp][lane + 32 * i] = mine[i];
    largest[warp] = most;
    total[warp] = weights;
    __syncthreads();
    for (int w = 0; w < kWarps; ++w) most = fmaxf(most, largest[w]);
    for (int d = threadIdx.x; d < head_dim; d += blockDim.x) {
        float sum = 0.0f, whole = 0.0f;
        for (int w = 0; w < kWarps; ++w) {
            const float part = expf(largest[w] - most);  // 0 of a warp that saw no token
            sum += part * sums[w][d];
            whole += part * total[w];
        }
        out[(size_t)blockIdx.x * head_dim + d] = __float2bfloat16(sum / whole);
    }
}

extern "C" void paged_decode_attention(const __nv_bfloat16* query, const __nv_bfloat16* key_cache,
                                       const __nv_bfloat16* value_cache, const int* page_table, const int* lengths,
                                       __nv_bfloat16* out, const int batch, const int num_heads, const int num_kv_heads,
                                       const int head_dim, const int page_size, const int max_pages) {
    attend<<<batch * num_heads, 32 * kWarps>>>(query, key_cache, value_cache, page_table, lengths, out, num_heads,
                                               num_kv_heads, head_dim, page_size, max_pages);
}

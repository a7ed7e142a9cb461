#include <cuda_runtime.h>

// One block a query. Its warps take a token each at a time, with a softmax of their own that goes on as
// scores come; the lanes share a token's elements. In the end the warps' sums are put together.
constexpr int kWarps = 4, kMost = 20;  // up to 32 * kMost elements a token are kept in registers

__global__ void attend(const __nv_bfloat16* query, const __nv_bfloat16* cache, const int* page_table, const int* lengths,
                       __nv_bfloat16* out, int num_heads, int latent_dim, int width, int page_size, int max_pages,
                       float scale) {
    __shared__ float sums[kWarps][32 * kMost], largest[kWarps], total[kWarps];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, b = blockIdx.x / num_heads;
    float q[kMost], mine[kMost], most = -INFINITY, weights = 0.0f;
    for (int i = 0; i < kMost; ++i) {
        const int d = lane + 32 * i;
        q[i] = d < width ? __bfloat162float(query[(size_t)blockIdx.x * width + d]) * scale : 0.0f;
        mine[i] = 0.0f;
    }
    for (int t = warp; t < lengths[b]; t += kWarps) {
        const size_t page = page_table[(size_t)b * max_pages + t / page_size];
        const __nv_bfloat16* row = cache + (page * page_size + t % page_size) * width;
        float token[kMost], score = 0.0f;
        for (int i = 0; i < kMost; ++i) {
            token[i] = lane + 32 * i < width ? __bfloat162float(row[lane + 32 * i]) : 0.0f;
            score += q[i] * token[i];
        }
        for (int half = 16; half > 0; half /= 2) score += __shfl_xor_sync(0xFFFFFFFFu, score, half);
        const float larger = fmaxf(most, score), less = expf(most - larger), weight = expf(score - larger);
        most = larger;
        weights = weights * less + weight;
        for (int i = 0; i < kMost; ++i) mine[i] = mine[i] * less + weight * token[i];
    }
    for (int i = 0; i < kMost; ++i) sums[warp][lane + 32 * i] = mine[i];
    largest[warp] = most;
    total[warp] = weights;
    __syncthreads();
    for (int w = 0; w < kWarps; ++w) most = fmaxf(most, largest[w]);
    for (int d = threadIdx.x; d < latent_dim; d += blockDim.x) {
        float sum = 0.0f, whole = 0.0f;
        for (int w = 0; w < kWarps; ++w) {
            const float part = expf(largest[w] - most);  // 0 of a warp that saw no token
            sum += part * sums[w][d];
            whole += part * total[w];
        }
        out[(size_t)blockIdx.x * latent_dim + d] = __float2bfloat16(sum / whole);
    }
}

extern "C" void mla_decode(const __nv_bfloat16* query, const __nv_bfloat16* cache, const int* page_table,
                           const int* lengths, __nv_bfloat16* out, const int batch, const int num_heads,
                           const int latent_dim, const int rope_dim, const int page_size, const int max_pages,
                           const float scale) {
    attend<<<batch * num_heads, 32 * kWarps>>>(query, cache, page_table, lengths, out, num_heads, latent_dim,
                                               latent_dim + rope_dim, page_size, max_pages, scale);
}

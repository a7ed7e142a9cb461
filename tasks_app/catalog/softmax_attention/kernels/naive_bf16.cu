// A block a query. Keys come in tiles: a warp a score, then the weights, then a thread for each of some columns of V, with sums that
// shrink whenever a larger score appears. Where V has more columns than a block has sums, the scores are computed again.
#include <cuda_bf16.h>

using bf16 = __nv_bfloat16;

constexpr int THREADS = 256;
constexpr int TILE = 64;
constexpr int COLUMNS = 16;  // sums a thread

__global__ void attend(bf16* Y, const bf16* Q, const bf16* K, const bf16* V, int keys, int dim_qk, int dim_v, float scale) {
    __shared__ float scores[TILE];
    const bf16* query = Q + (long long)blockIdx.x * dim_qk;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (long long first = threadIdx.x; first - threadIdx.x < dim_v; first += THREADS * COLUMNS) {
        float sums[COLUMNS] = {}, total = 0.0f, largest = -INFINITY;
        for (long long start = 0; start < keys; start += TILE) {
            const int count = (int)min((long long)TILE, keys - start);
            for (int k = warp; k < count; k += THREADS / 32) {
                const bf16* key = K + (start + k) * dim_qk;
                float score = 0.0f;
                for (int c = lane; c < dim_qk; c += 32) score += __bfloat162float(query[c]) * __bfloat162float(key[c]);
                for (int half = 16; half > 0; half /= 2) score += __shfl_down_sync(0xffffffffu, score, half);
                if (lane == 0) scores[k] = score * scale;
            }
            __syncthreads();
            float peak = largest;
            for (int k = 0; k < count; ++k) peak = fmaxf(peak, scores[k]);
            __syncthreads();
            if (threadIdx.x < count) scores[threadIdx.x] = expf(scores[threadIdx.x] - peak);
            __syncthreads();
            const float shrink = expf(largest - peak);
            largest = peak;
            total *= shrink;
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) sums[j] *= shrink;
            for (int k = 0; k < count; ++k) {
                const bf16* value = V + (start + k) * dim_v;
                total += scores[k];
#pragma unroll
                for (int j = 0; j < COLUMNS; ++j)
                    if (first + j * THREADS < dim_v) sums[j] += scores[k] * __bfloat162float(value[first + j * THREADS]);
            }
            __syncthreads();
        }
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
            if (first + j * THREADS < dim_v) Y[(long long)blockIdx.x * dim_v + first + j * THREADS] = __float2bfloat16(sums[j] / total);
    }
}

extern "C" void softmax_attention_bf16(bf16* Y, const bf16* Q, const bf16* K, const bf16* V, int q_seq_len, int kv_seq_len, int dim_qk,
                                  int dim_v) {
    attend<<<q_seq_len, THREADS>>>(Y, Q, K, V, kv_seq_len, dim_qk, dim_v, 1.0f / sqrtf((float)dim_qk));
}

#include <cuda_runtime.h>

// One block a tile of 32 x 32 results of one expert. Blocks are laid out for the most tiles that there can
// be, and each finds its expert by counting the tiles before it; tiles of operands stand in shared memory.
constexpr int kTile = 32, kRows = 8;

__global__ void multiply(const __nv_bfloat16* x, const __nv_bfloat16* weights, const int* offsets, __nv_bfloat16* out,
                         int num_experts, int in_features, int out_features) {
    __shared__ float left[kTile][kTile + 1], right[kTile][kTile + 1];
    int expert = 0, tile = blockIdx.x;
    for (; expert < num_experts; ++expert) {
        const int tiles = (offsets[expert + 1] - offsets[expert] + kTile - 1) / kTile;
        if (tile < tiles) break;
        tile -= tiles;
    }
    if (expert == num_experts) return;
    const int begin = offsets[expert] + tile * kTile, end = min(begin + kTile, offsets[expert + 1]);
    const int column = blockIdx.y * kTile + threadIdx.x;
    const __nv_bfloat16* own = weights + (size_t)expert * out_features * in_features;
    float sums[kTile / kRows] = {};
    for (int k = 0; k < in_features; k += kTile) {
        const int i = k + threadIdx.x;
        for (int r = threadIdx.y; r < kTile; r += kRows) {
            const int o = blockIdx.y * kTile + r;
            left[r][threadIdx.x] =
                begin + r < end && i < in_features ? __bfloat162float(x[(size_t)(begin + r) * in_features + i]) : 0.0f;
            right[r][threadIdx.x] =
                o < out_features && i < in_features ? __bfloat162float(own[(size_t)o * in_features + i]) : 0.0f;
        }
        __syncthreads();
        for (int j = 0; j < kTile; ++j) {
            for (int r = 0; r < kTile / kRows; ++r) sums[r] += left[threadIdx.y + r * kRows][j] * right[threadIdx.x][j];
        }
        __syncthreads();
    }
    for (int r = 0; r < kTile / kRows; ++r) {
        const int row = begin + threadIdx.y + r * kRows;
        if (row < end && column < out_features) out[(size_t)row * out_features + column] = __float2bfloat16(sums[r]);
    }
}

extern "C" void moe_grouped_matmul(const __nv_bfloat16* x, const __nv_bfloat16* weights, const int* offsets,
                                   __nv_bfloat16* out, const int num_rows, const int num_experts,
                                   const int in_features, const int out_features) {
    const int tiles = num_rows / kTile + (num_rows < num_experts ? num_rows : num_experts);
    const dim3 blocks(tiles, (out_features + kTile - 1) / kTile);
    multiply<<<blocks, dim3(kTile, kRows)>>>(x, weights, offsets, out, num_experts, in_features, out_features);
}

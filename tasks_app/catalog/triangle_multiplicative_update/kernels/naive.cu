#include <cuda_runtime.h>

// Three kernels. The first and the last take a pair a block: a row is normalised in shared memory, and each
// thread computes some outputs. Between them, edges lie channel by channel in memory that is kept for the
// next call, and each channel is a product of two square matrices.
namespace {

constexpr int kThreads = 128, kTile = 32, kRows = 8;

__device__ float share(float gate) { return 1.0f / (1.0f + expf(-gate)); }

__device__ float over_block(float value) {
    __shared__ float parts[kThreads];
    __syncthreads();
    parts[threadIdx.x] = value;
    for (int half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    __syncthreads();
    return parts[0];
}

// In place, in shared memory; all threads see the result.
__device__ void normalise(float* x, int count, const __nv_bfloat16* weight, const __nv_bfloat16* bias) {
    __syncthreads();
    float sum = 0.0f, squares = 0.0f;
    for (int c = threadIdx.x; c < count; c += kThreads) sum += x[c];
    const float mean = over_block(sum) / count;
    for (int c = threadIdx.x; c < count; c += kThreads) squares += (x[c] - mean) * (x[c] - mean);
    const float factor = rsqrtf(over_block(squares) / count + 1e-5f);
    for (int c = threadIdx.x; c < count; c += kThreads) {
        x[c] = (x[c] - mean) * factor * __bfloat162float(weight[c]) + __bfloat162float(bias[c]);
    }
    __syncthreads();
}

__device__ float product(const float* x, const __nv_bfloat16* weights, int count) {
    float sum = 0.0f;
    for (int c = 0; c < count; ++c) sum += x[c] * __bfloat162float(weights[c]);
    return sum;
}

__global__ void make_edges(const __nv_bfloat16* pairs, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                           const __nv_bfloat16* in_weights, float* first, float* second, int channels, int hidden) {
    extern __shared__ float x[];
    const size_t own = (size_t)hidden * channels;
    for (int c = threadIdx.x; c < channels; c += kThreads) {
        x[c] = __bfloat162float(pairs[(size_t)blockIdx.x * channels + c]);
    }
    normalise(x, channels, weight, bias);
    for (int h = threadIdx.x; h < hidden; h += kThreads) {
        const __nv_bfloat16* w = in_weights + (size_t)h * channels;
        const size_t at = (size_t)h * gridDim.x + blockIdx.x;
        first[at] = share(product(x, w, channels)) * product(x, w + own, channels);
        second[at] = share(product(x, w + 2 * own, channels)) * product(x, w + 3 * own, channels);
    }
}

__global__ void sum_triangles(const float* first, const float* second, float* sums, int n) {
    __shared__ float left[kTile][kTile + 1], right[kTile][kTile + 1];
    const size_t channel = (size_t)blockIdx.z * n * n;
    const int begin = blockIdx.y * kTile, other = blockIdx.x * kTile;
    float mine[kTile / kRows] = {};
    for (int k = 0; k < n; k += kTile) {
        const int at = k + threadIdx.x;
        for (int r = threadIdx.y; r < kTile; r += kRows) {
            left[r][threadIdx.x] = begin + r < n && at < n ? first[channel + (size_t)(begin + r) * n + at] : 0.0f;
            right[r][threadIdx.x] = other + r < n && at < n ? second[channel + (size_t)(other + r) * n + at] : 0.0f;
        }
        __syncthreads();
        for (int m = 0; m < kTile; ++m) {
            for (int r = 0; r < kTile / kRows; ++r) mine[r] += left[threadIdx.y + r * kRows][m] * right[threadIdx.x][m];
        }
        __syncthreads();
    }
    for (int r = 0; r < kTile / kRows; ++r) {
        const int i = begin + threadIdx.y + r * kRows, j = other + threadIdx.x;
        if (i < n && j < n) sums[channel + (size_t)i * n + j] = mine[r];
    }
}

__global__ void finish(const __nv_bfloat16* pairs, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                       const float* sums, const __nv_bfloat16* out_norm_weight, const __nv_bfloat16* out_norm_bias,
                       const __nv_bfloat16* out_weight, const __nv_bfloat16* gate_weight, __nv_bfloat16* out,
                       int channels, int hidden) {
    extern __shared__ float x[];
    float* y = x + channels;
    for (int c = threadIdx.x; c < channels; c += kThreads) {
        x[c] = __bfloat162float(pairs[(size_t)blockIdx.x * channels + c]);
    }
    for (int h = threadIdx.x; h < hidden; h += kThreads) y[h] = sums[(size_t)h * gridDim.x + blockIdx.x];
    normalise(x, channels, weight, bias);
    normalise(y, hidden, out_norm_weight, out_norm_bias);
    for (int c = threadIdx.x; c < channels; c += kThreads) {
        const float gate = share(product(x, gate_weight + (size_t)c * channels, channels));
        const float value = gate * product(y, out_weight + (size_t)c * hidden, hidden);
        out[(size_t)blockIdx.x * channels + c] = __float2bfloat16(value);
    }
}

float* workspace(size_t count) {
    static float* memory = nullptr;
    static size_t held = 0;
    if (count > held) {
        cudaFree(memory);
        held = cudaMalloc(&memory, count * sizeof(float)) == cudaSuccess ? count : 0;
    }
    return memory;
}

}  // namespace

extern "C" void triangle_multiplicative_update(const __nv_bfloat16* pairs, const __nv_bfloat16* norm_weight,
                                               const __nv_bfloat16* norm_bias, const __nv_bfloat16* in_weights,
                                               const __nv_bfloat16* out_norm_weight, const __nv_bfloat16* out_norm_bias,
                                               const __nv_bfloat16* out_weight, const __nv_bfloat16* gate_weight,
                                               __nv_bfloat16* out, const int num_tokens, const int channels,
                                               const int hidden) {
    const int count = num_tokens * num_tokens, tiles = (num_tokens + kTile - 1) / kTile;
    const size_t edges = (size_t)count * hidden;
    float* first = workspace(3 * edges);
    float *second = first + edges, *sums = second + edges;
    const size_t row = channels * sizeof(float);
    make_edges<<<count, kThreads, row>>>(pairs, norm_weight, norm_bias, in_weights, first, second, channels, hidden);
    sum_triangles<<<dim3(tiles, tiles, hidden), dim3(kTile, kRows)>>>(first, second, sums, num_tokens);
    finish<<<count, kThreads, row + hidden * sizeof(float)>>>(pairs, norm_weight, norm_bias, sums, out_norm_weight,
                                                              out_norm_bias, out_weight, gate_weight, out, channels,
                                                              hidden);
}

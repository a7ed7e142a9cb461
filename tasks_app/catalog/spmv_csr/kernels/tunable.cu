// LANES lanes a row; rows longer than LONG_ROW are put aside and taken by the whole block.
// Every declared combination is correct.
#include <cuda_runtime.h>

namespace {

constexpr int LANES = 1;  // knob: 1 2 4 8 16 32
constexpr int THREADS = 128;  // knob: 64 128 256 512
// Elements in flight a lane, each with a sum of its own.
constexpr int UNROLL = 1;  // knob: 1 2 4
// Elements of a row from which it is left to the block.
constexpr int LONG_ROW = 2147483647;  // knob: 128 512 2048 8192 2147483647
// Whether values and columns are marked as not to be needed again, so that x stays in the caches.
constexpr bool STREAM = false;  // knob: false true

constexpr int GROUPS = THREADS / LANES;  // rows of a block

template <class T>
__device__ __forceinline__ T load(const T* p) {
    return STREAM ? __ldcs(p) : __ldg(p);
}

// The part of a row's product that falls to one of `width` lanes.
__device__ __forceinline__ float row_part(const float* __restrict__ values, const int* __restrict__ col_indices,
                                          const float* __restrict__ x, int begin, int end, int lane, int width) {
    float sums[UNROLL] = {};
    int k = begin + lane;
    for (; k + (UNROLL - 1) * width < end; k += UNROLL * width) {
        float v[UNROLL];
        int c[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            v[j] = load(values + k + j * width);
            c[j] = load(col_indices + k + j * width);
        }
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) sums[j] = fmaf(v[j], __ldg(x + c[j]), sums[j]);
    }
    for (; k < end; k += width) sums[0] = fmaf(load(values + k), __ldg(x + load(col_indices + k)), sums[0]);
    float total = 0.0f;
#pragma unroll
    for (int j = 0; j < UNROLL; ++j) total += sums[j];
    return total;
}

// The sum over groups of WIDTH neighbouring lanes, in the first lane of each.
template <int WIDTH>
__device__ __forceinline__ float sum_over(float value) {
#pragma unroll
    for (int offset = WIDTH / 2; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset, WIDTH);
    return value;
}

__global__ void __launch_bounds__(THREADS)
multiply(int rows, const float* __restrict__ values, const int* __restrict__ col_indices,
         const int* __restrict__ row_offsets, const float* __restrict__ x, float* __restrict__ y) {
    __shared__ int long_rows[GROUPS];
    __shared__ int long_count;
    __shared__ float warp_sums[THREADS / 32];
    if (threadIdx.x == 0) long_count = 0;
    __syncthreads();

    const long long row = blockIdx.x * (long long)GROUPS + threadIdx.x / LANES;
    const int lane = threadIdx.x % LANES;
    const int begin = row < rows ? row_offsets[row] : 0;
    const int end = row < rows ? row_offsets[row + 1] : 0;
    const bool is_long = end - begin >= LONG_ROW;
    const float sum = sum_over<LANES>(is_long ? 0.0f : row_part(values, col_indices, x, begin, end, lane, LANES));
    if (lane == 0 && row < rows) {
        if (is_long)
            long_rows[atomicAdd(&long_count, 1)] = (int)row;
        else
            y[row] = sum;
    }
    __syncthreads();

    const int count = long_count;
    for (int i = 0; i < count; ++i) {
        const int r = long_rows[i];
        const float part = row_part(values, col_indices, x, row_offsets[r], row_offsets[r + 1], threadIdx.x, THREADS);
        const float warp = sum_over<32>(part);
        if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = warp;
        __syncthreads();
        if (threadIdx.x == 0) {
            float total = 0.0f;
            for (int w = 0; w < THREADS / 32; ++w) total += warp_sums[w];
            y[r] = total;
        }
        __syncthreads();
    }
}

}  // namespace

extern "C" void spmv_csr(int rows, const float* values, const int* col_indices, const int* row_offsets, const float* x, float* y) {
    const unsigned blocks = (unsigned)((rows + GROUPS - 1LL) / GROUPS);
    multiply<<<blocks, THREADS>>>(rows, values, col_indices, row_offsets, x, y);
}

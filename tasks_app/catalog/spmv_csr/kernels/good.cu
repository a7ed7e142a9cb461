// A group of 2 to 32 lanes a row, as wide as the mean row is long; rows far longer than the mean are put aside and
// taken by the whole block. The mean is read on the device: the host never learns the number of non-zeros.
#include <cuda_runtime.h>

namespace {

constexpr int THREADS = 256;
constexpr int LONG_ROW = 64;  // elements a lane at which a row is left to the block

// The part of a row's product that falls to one of `width` lanes; two independent sums hide the gather's latency.
__device__ __forceinline__ float row_part(const float* __restrict__ values, const int* __restrict__ col_indices,
                                          const float* __restrict__ x, int begin, int end, int lane, int width) {
    float first = 0.0f, second = 0.0f;
    int k = begin + lane;
    for (; k + width < end; k += 2 * width) {
        const float v0 = __ldcs(values + k), v1 = __ldcs(values + k + width);
        const int c0 = __ldcs(col_indices + k), c1 = __ldcs(col_indices + k + width);
        first = fmaf(v0, __ldg(x + c0), first);
        second = fmaf(v1, __ldg(x + c1), second);
    }
    if (k < end) first = fmaf(values[k], __ldg(x + col_indices[k]), first);
    return first + second;
}

__global__ void __launch_bounds__(THREADS)
multiply(int rows, const float* __restrict__ values, const int* __restrict__ col_indices,
         const int* __restrict__ row_offsets, const float* __restrict__ x, float* __restrict__ y) {
    __shared__ int long_rows[THREADS / 2];
    __shared__ int long_count;
    __shared__ float warp_sums[THREADS / 32];

    const int mean = (__ldg(row_offsets + rows) - __ldg(row_offsets)) / rows;
    int width = 2;
    while (width < 32 && 2 * width <= mean) width *= 2;
    const int lane = threadIdx.x % width;
    const int group = threadIdx.x / width;
    const int groups = THREADS / width;

    for (long long base = (long long)blockIdx.x * groups; base < rows; base += (long long)gridDim.x * groups) {
        if (threadIdx.x == 0) long_count = 0;
        __syncthreads();

        const long long row = base + group;
        int begin = 0, end = 0;
        if (row < rows) {
            begin = row_offsets[row];
            end = row_offsets[row + 1];
        }
        const bool is_long = end - begin > LONG_ROW * width;
        float sum = is_long ? 0.0f : row_part(values, col_indices, x, begin, end, lane, width);
        for (int offset = width / 2; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset, width);
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
            float part = row_part(values, col_indices, x, row_offsets[r], row_offsets[r + 1], threadIdx.x, THREADS);
            for (int offset = 16; offset > 0; offset /= 2) part += __shfl_down_sync(0xffffffffu, part, offset);
            if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = part;
            __syncthreads();
            if (threadIdx.x == 0) {
                float total = 0.0f;
                for (int w = 0; w < THREADS / 32; ++w) total += warp_sums[w];
                y[r] = total;
            }
            __syncthreads();
        }
        __syncthreads();
    }
}

}  // namespace

extern "C" void spmv_csr(int rows, const float* values, const int* col_indices, const int* row_offsets, const float* x, float* y) {
    constexpr int MOST_BLOCKS = 1 << 16;  // beyond, blocks take several groups of rows
    const long long blocks = (rows + THREADS / 32 - 1LL) / (THREADS / 32);
    multiply<<<(unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), THREADS>>>(rows, values, col_indices, row_offsets, x, y);
}

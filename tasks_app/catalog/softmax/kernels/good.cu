// The row stays in registers between its only read and its only write; short rows take a warp, long ones a block.
#include <cuda_runtime.h>

namespace {

constexpr unsigned FULL = 0xffffffffu;

struct Max {
    static __device__ float identity() { return -INFINITY; }
    static __device__ float apply(float a, float b) { return fmaxf(a, b); }
};
struct Sum {
    static __device__ float identity() { return 0.0f; }
    static __device__ float apply(float a, float b) { return a + b; }
};

template <class Op>
__device__ float warp_reduce(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value = Op::apply(value, __shfl_xor_sync(FULL, value, offset));
    return value;
}

// The reduction over WARPS warps, in every thread. `scratch` holds WARPS values and may be reused after the call.
template <class Op, int WARPS>
__device__ float reduce(float value, float* scratch) {
    value = warp_reduce<Op>(value);
    if constexpr (WARPS > 1) {
        const int lane = threadIdx.x % 32;
        if (lane == 0) scratch[threadIdx.x / 32] = value;
        __syncthreads();
        value = lane < WARPS ? scratch[lane] : Op::identity();
        value = warp_reduce<Op>(value);
        __syncthreads();
    }
    return value;
}

// Each of 32 * WARPS threads holds ITEMS elements of its row. With WARPS == 1 a block's warps take a row each.
// VEC: C is a multiple of four, so that every row starts on 16 bytes.
template <int WARPS, int ITEMS, bool VEC>
__global__ void softmax_registers(float* __restrict__ out, const float* __restrict__ input, int N, int C) {
    __shared__ float scratch[32];
    constexpr int THREADS = 32 * WARPS;
    constexpr int WIDTH = VEC ? 4 : 1;
    const long long row = WARPS == 1 ? blockIdx.x * (long long)(blockDim.x / 32) + threadIdx.x / 32 : blockIdx.x;
    if (row >= N) return;  // a whole warp, or nobody
    const int lane = threadIdx.x % THREADS;
    const float* in = input + row * C;
    float* result = out + row * C;

    float v[ITEMS];
    float largest = -INFINITY;
#pragma unroll
    for (int i = 0; i < ITEMS; i += WIDTH) {
        const int c = (i / WIDTH * THREADS + lane) * WIDTH;
        if constexpr (VEC) {
            float4 q = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
            if (c < C) q = __ldcs(reinterpret_cast<const float4*>(in + c));
            v[i] = q.x;
            v[i + 1] = q.y;
            v[i + 2] = q.z;
            v[i + 3] = q.w;
        } else {
            v[i] = c < C ? __ldcs(in + c) : -INFINITY;
        }
    }
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) largest = fmaxf(largest, v[i]);
    largest = reduce<Max, WARPS>(largest, scratch);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        v[i] = __expf(v[i] - largest);
        sum += v[i];
    }
    const float scale = 1.0f / reduce<Sum, WARPS>(sum, scratch);
#pragma unroll
    for (int i = 0; i < ITEMS; i += WIDTH) {
        const int c = (i / WIDTH * THREADS + lane) * WIDTH;
        if (c >= C) continue;
        if constexpr (VEC)
            __stcs(reinterpret_cast<float4*>(result + c),
                   make_float4(v[i] * scale, v[i + 1] * scale, v[i + 2] * scale, v[i + 3] * scale));
        else
            __stcs(result + c, v[i] * scale);
    }
}

// Rows of any length: one pass that keeps a running maximum and the sum scaled to it, and one that writes.
template <int WARPS>
__global__ void __launch_bounds__(32 * WARPS) softmax_online(float* __restrict__ out, const float* __restrict__ input, int C) {
    __shared__ float scratch[32];
    const float* in = input + (long long)blockIdx.x * C;
    float* result = out + (long long)blockIdx.x * C;
    constexpr int THREADS = 32 * WARPS;
    constexpr int UNROLL = 8;

    float largest = -INFINITY, sum = 0.0f;
    for (long long c = threadIdx.x; c < C; c += THREADS * UNROLL) {
        float v[UNROLL];
        float top = largest;
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            v[j] = c + j * THREADS < C ? in[c + j * THREADS] : -INFINITY;
            top = fmaxf(top, v[j]);
        }
        if (top == -INFINITY) continue;  // nothing finite yet: -inf - -inf would be NaN
        sum *= __expf(largest - top);
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) sum += __expf(v[j] - top);
        largest = top;
    }
    const float top = reduce<Max, WARPS>(largest, scratch);
    sum = reduce<Sum, WARPS>(largest == -INFINITY ? 0.0f : sum * __expf(largest - top), scratch);
    const float scale = 1.0f / sum;
    for (int c = threadIdx.x; c < C; c += THREADS) __stcs(result + c, __expf(in[c] - top) * scale);
}

template <bool VEC>
void launch(float* out, const float* input, int N, int C) {
    constexpr int ROWS = 4;  // rows, and so warps, of a block where a row takes a warp
    const unsigned blocks = (unsigned)((N + (long long)ROWS - 1) / ROWS);
    if (C <= 128)
        softmax_registers<1, 4, VEC><<<blocks, 32 * ROWS>>>(out, input, N, C);
    else if (C <= 512)
        softmax_registers<1, 16, VEC><<<blocks, 32 * ROWS>>>(out, input, N, C);
    else if (C <= 1024)
        softmax_registers<4, 8, VEC><<<N, 128>>>(out, input, N, C);
    else if (C <= 4096)
        softmax_registers<16, 8, VEC><<<N, 512>>>(out, input, N, C);
    else if (C <= 16384)
        softmax_registers<32, 16, VEC><<<N, 1024>>>(out, input, N, C);
    else
        softmax_online<32><<<N, 1024>>>(out, input, C);
}

}  // namespace

extern "C" void softmax(float* out, const float* input, int N, int C) {
    if (C % 4 == 0)
        launch<true>(out, input, N, C);
    else
        launch<false>(out, input, N, C);
}

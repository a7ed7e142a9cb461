// A row stays in registers between its read and its write, in a warp or in a block; rows beyond 16384 classes are read
// twice, the first time with a running maximum.
#include <torch/extension.h>

#include <c10/cuda/CUDAStream.h>

namespace {

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
    for (int offset = 16; offset > 0; offset /= 2) value = Op::apply(value, __shfl_xor_sync(0xffffffffu, value, offset));
    return value;
}

// The reduction over WARPS warps, in every thread; `scratch` may be reused after the call.
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

// Each of 32 * WARPS threads holds ITEMS logits of its row. With WARPS == 1 a block's warps take a row each.
template <int WARPS, int ITEMS>
__global__ void gradient_registers(const float* __restrict__ grad_output, const float* __restrict__ predictions,
                                   const int64_t* __restrict__ targets, float* __restrict__ grad, int batch, int classes) {
    __shared__ float scratch[32];
    constexpr int THREADS = 32 * WARPS;
    const long long row = WARPS == 1 ? blockIdx.x * (long long)(blockDim.x / 32) + threadIdx.x / 32 : blockIdx.x;
    if (row >= batch) return;  // a whole warp, or nobody
    const int lane = threadIdx.x % THREADS;
    const float* in = predictions + row * classes;
    const int64_t target = __ldg(targets + row);
    const float weight = __ldg(grad_output) / batch;

    float v[ITEMS];
    float largest = -INFINITY;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const int c = i * THREADS + lane;
        v[i] = c < classes ? __ldcs(in + c) : -INFINITY;
        largest = fmaxf(largest, v[i]);
    }
    largest = reduce<Max, WARPS>(largest, scratch);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        v[i] = __expf(v[i] - largest);
        sum += v[i];
    }
    const float scale = 1.0f / reduce<Sum, WARPS>(sum, scratch);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const int c = i * THREADS + lane;
        if (c < classes) __stcs(grad + row * classes + c, fmaf(v[i], scale, c == target ? -1.0f : 0.0f) * weight);
    }
}

constexpr int LONG_WARPS = 32;

__global__ void __launch_bounds__(32 * LONG_WARPS)
gradient_online(const float* __restrict__ grad_output, const float* __restrict__ predictions,
                const int64_t* __restrict__ targets, float* __restrict__ grad, int batch, int classes) {
    __shared__ float scratch[32];
    constexpr int THREADS = 32 * LONG_WARPS, UNROLL = 8;
    const float* in = predictions + blockIdx.x * (long long)classes;
    float* result = grad + blockIdx.x * (long long)classes;
    const int64_t target = __ldg(targets + blockIdx.x);
    const float weight = __ldg(grad_output) / batch;

    float largest = -INFINITY, sum = 0.0f;
    for (long long c = threadIdx.x; c < classes; c += THREADS * UNROLL) {
        float v[UNROLL];
        float top = largest;
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            v[j] = c + j * THREADS < classes ? in[c + j * THREADS] : -INFINITY;
            top = fmaxf(top, v[j]);
        }
        if (top == -INFINITY) continue;  // nothing finite yet: -inf - -inf would be NaN
        sum *= __expf(largest - top);
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) sum += __expf(v[j] - top);
        largest = top;
    }
    const float top = reduce<Max, LONG_WARPS>(largest, scratch);
    sum = reduce<Sum, LONG_WARPS>(largest == -INFINITY ? 0.0f : sum * __expf(largest - top), scratch);
    const float scale = 1.0f / sum;
    for (int c = threadIdx.x; c < classes; c += THREADS)
        __stcs(result + c, fmaf(__expf(in[c] - top), scale, c == target ? -1.0f : 0.0f) * weight);
}

}  // namespace

torch::Tensor backward(torch::Tensor grad_output, torch::Tensor predictions, torch::Tensor targets) {
    auto grad = torch::empty_like(predictions);
    const int batch = static_cast<int>(predictions.size(0)), classes = static_cast<int>(predictions.size(1));
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const auto run = [&](auto kernel, int blocks, int threads) {
        kernel<<<blocks, threads, 0, stream>>>(grad_output.data_ptr<float>(), predictions.data_ptr<float>(),
                                               targets.data_ptr<int64_t>(), grad.data_ptr<float>(), batch, classes);
    };
    constexpr int ROWS = 4;  // rows, and so warps, of a block where a row takes a warp
    const int shared_blocks = (batch + ROWS - 1) / ROWS;
    if (classes <= 32)
        run(gradient_registers<1, 1>, shared_blocks, 32 * ROWS);
    else if (classes <= 128)
        run(gradient_registers<1, 4>, shared_blocks, 32 * ROWS);
    else if (classes <= 512)
        run(gradient_registers<1, 16>, shared_blocks, 32 * ROWS);
    else if (classes <= 1024)
        run(gradient_registers<4, 8>, batch, 128);
    else if (classes <= 4096)
        run(gradient_registers<16, 8>, batch, 512);
    else if (classes <= 16384)
        run(gradient_registers<32, 16>, batch, 1024);
    else
        run(gradient_online, batch, 32 * LONG_WARPS);
    return grad;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("backward", &backward); }

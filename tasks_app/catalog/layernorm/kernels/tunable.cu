// Two launches. First, blocks take slices of a sample and leave count, mean and squared deviations of their slice. Then
// every block merges the slices' moments of its sample again, and normalises. Every declared combination is correct.
#include <torch/extension.h>

#include <algorithm>
#include <c10/cuda/CUDAStream.h>

namespace {

constexpr int THREADS = 128;  // knob: 64 128 256 512 1024
// Floats of a load, where a sample's size is a multiple of it.
constexpr int VECTOR = 1;  // knob: 1 2 4
// Loads in flight a thread.
constexpr int UNROLL = 1;  // knob: 1 2 4 8
// Slices of a sample at most, each a block of the first launch.
constexpr int MAX_SLICES = 32;  // knob: 32 64 128 256 512
// Blocks of the second launch for a sample, at most.
constexpr int MAX_BLOCKS = 64;  // knob: 64 256 1024 4096

constexpr int WARPS = THREADS / 32;

struct Moments {
    float count, mean, squares;  // squares: sum of squared deviations from the mean
};

// Moments of the union, by Chan's formula.
__device__ Moments merge(Moments a, Moments b) {
    const float count = a.count + b.count;
    if (count == 0.0f) return a;
    const float delta = b.mean - a.mean, share = b.count / count;
    return {count, fmaf(delta, share, a.mean), a.squares + b.squares + delta * delta * a.count * share};
}

__device__ Moments warp_merge(Moments m) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
        m = merge(m, {__shfl_xor_sync(0xffffffffu, m.count, offset), __shfl_xor_sync(0xffffffffu, m.mean, offset),
                      __shfl_xor_sync(0xffffffffu, m.squares, offset)});
    return m;
}

// The moments of the whole block, in every thread.
__device__ Moments block_merge(Moments m) {
    __shared__ Moments warps[WARPS];
    const int lane = threadIdx.x % 32;
    m = warp_merge(m);
    if (lane == 0) warps[threadIdx.x / 32] = m;
    __syncthreads();
    m = lane < WARPS ? warps[lane] : Moments{0.0f, 0.0f, 0.0f};
    return warp_merge(m);
}

template <int WIDTH>
struct alignas(4 * WIDTH) Pack {
    float v[WIDTH];
};

// `size` counts packs of WIDTH floats, here and below.
template <int WIDTH>
__global__ void __launch_bounds__(THREADS) slice_moments(const float* __restrict__ x, Moments* __restrict__ slices, int size) {
    const long long sample = blockIdx.y;
    const auto* in = reinterpret_cast<const Pack<WIDTH>*>(x) + sample * size;
    const float shift = in[0].v[0];  // sums are of differences from one element, so that squares do not cancel
    float count = 0.0f, sum = 0.0f, squares = 0.0f;
    const int step = gridDim.x * THREADS;
    for (int base = blockIdx.x * THREADS + threadIdx.x; base < size; base += step * UNROLL) {
        Pack<WIDTH> packs[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j)
            if (base + j * step < size) packs[j] = in[base + j * step];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            if (base + j * step >= size) break;
            count += WIDTH;
#pragma unroll
            for (int w = 0; w < WIDTH; ++w) {
                const float value = packs[j].v[w] - shift;
                sum += value;
                squares = fmaf(value, value, squares);
            }
        }
    }
    Moments m = {0.0f, 0.0f, 0.0f};
    if (count > 0.0f) {
        const float mean = sum / count;
        m = {count, mean + shift, fmaxf(fmaf(-mean, sum, squares), 0.0f)};
    }
    m = block_merge(m);
    if (threadIdx.x == 0) slices[sample * gridDim.x + blockIdx.x] = m;
}

template <int WIDTH>
__global__ void __launch_bounds__(THREADS)
normalise(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          const Moments* __restrict__ slices, float* __restrict__ out, int slice_count, int size, float eps) {
    const long long sample = blockIdx.y;
    Moments m = {0.0f, 0.0f, 0.0f};
    for (int i = threadIdx.x; i < slice_count; i += THREADS) m = merge(m, slices[sample * slice_count + i]);
    m = block_merge(m);
    const float mean = m.mean, scale = rsqrtf(m.squares / m.count + eps);
    const auto* in = reinterpret_cast<const Pack<WIDTH>*>(x) + sample * size;
    auto* result = reinterpret_cast<Pack<WIDTH>*>(out) + sample * size;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < size; i += gridDim.x * THREADS) {
        const Pack<WIDTH> v = in[i];
        const Pack<WIDTH> w = reinterpret_cast<const Pack<WIDTH>*>(weight)[i];
        const Pack<WIDTH> b = reinterpret_cast<const Pack<WIDTH>*>(bias)[i];
        Pack<WIDTH> scaled;
#pragma unroll
        for (int l = 0; l < WIDTH; ++l) scaled.v[l] = fmaf((v.v[l] - mean) * scale, w.v[l], b.v[l]);
        result[i] = scaled;
    }
}

template <int WIDTH>
void launch(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias, torch::Tensor& out, float eps) {
    const int batch = static_cast<int>(x.size(0));
    const int size = static_cast<int>(weight.numel() / WIDTH);
    const int slice_count = std::clamp((size + THREADS * UNROLL - 1) / (THREADS * UNROLL), 1, MAX_SLICES);
    const int blocks = std::clamp((size + THREADS - 1) / THREADS, 1, MAX_BLOCKS);
    auto moments = torch::empty({batch, slice_count, 3}, x.options());
    auto* slices = reinterpret_cast<Moments*>(moments.data_ptr<float>());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    slice_moments<WIDTH><<<dim3(slice_count, batch), THREADS, 0, stream>>>(x.data_ptr<float>(), slices, size);
    normalise<WIDTH><<<dim3(blocks, batch), THREADS, 0, stream>>>(x.data_ptr<float>(), weight.data_ptr<float>(),
                                                                  bias.data_ptr<float>(), slices, out.data_ptr<float>(),
                                                                  slice_count, size, eps);
}

}  // namespace

torch::Tensor forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
    auto out = torch::empty_like(x);
    if (weight.numel() % VECTOR == 0)
        launch<VECTOR>(x, weight, bias, out, static_cast<float>(eps));
    else
        launch<1>(x, weight, bias, out, static_cast<float>(eps));
    return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }

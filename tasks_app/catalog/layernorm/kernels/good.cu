// Two launches. First, blocks take slices of a sample and leave count, mean and squared deviations of their slice.
// Then every block merges the slices' moments of its sample again, which is cheaper than a third launch, and normalises.
#include <torch/extension.h>

#include <algorithm>
#include <c10/cuda/CUDAStream.h>

namespace {

constexpr int THREADS = 256;
constexpr int MAX_SLICES = THREADS;  // a thread merges one slice's moments
constexpr int UNROLL = 4;

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
    __shared__ Moments warps[THREADS / 32];
    const int lane = threadIdx.x % 32;
    m = warp_merge(m);
    if (lane == 0) warps[threadIdx.x / 32] = m;
    __syncthreads();
    m = lane < THREADS / 32 ? warps[lane] : Moments{0.0f, 0.0f, 0.0f};
    return warp_merge(m);
}

// Sums of a thread's values shifted by one of the sample's elements, so that squares do not cancel.
struct Sums {
    float count = 0.0f, sum = 0.0f, squares = 0.0f;
    __device__ void add(float value) {
        count += 1.0f;
        sum += value;
        squares = fmaf(value, value, squares);
    }
};

// VEC: `size` is a multiple of four, so that every sample starts on 16 bytes; `size` then counts float4.
template <bool VEC>
__global__ void __launch_bounds__(THREADS) slice_moments(const float* __restrict__ x, Moments* __restrict__ slices, int size) {
    const long long sample = blockIdx.y;
    const float* in = x + sample * size * (VEC ? 4 : 1);
    const float shift = __ldg(in);
    Sums sums;
    const int step = gridDim.x * THREADS;
    for (int base = blockIdx.x * THREADS + threadIdx.x; base < size; base += step * UNROLL) {
        float4 v[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            const int i = base + j * step;
            if (i >= size) break;
            if constexpr (VEC)
                v[j] = __ldg(reinterpret_cast<const float4*>(in) + i);
            else
                v[j].x = __ldg(in + i);
        }
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            if (base + j * step >= size) break;
            sums.add(v[j].x - shift);
            if constexpr (VEC) {
                sums.add(v[j].y - shift);
                sums.add(v[j].z - shift);
                sums.add(v[j].w - shift);
            }
        }
    }
    Moments m = {0.0f, 0.0f, 0.0f};
    if (sums.count > 0.0f) {
        const float mean = sums.sum / sums.count;
        m = {sums.count, mean + shift, fmaxf(fmaf(-mean, sums.sum, sums.squares), 0.0f)};
    }
    m = block_merge(m);
    if (threadIdx.x == 0) slices[sample * gridDim.x + blockIdx.x] = m;
}

template <bool VEC>
__global__ void __launch_bounds__(THREADS)
normalise(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          const Moments* __restrict__ slices, float* __restrict__ out, int slice_count, int size, float eps) {
    const long long sample = blockIdx.y;
    Moments m = {0.0f, 0.0f, 0.0f};
    if (threadIdx.x < slice_count) m = slices[sample * slice_count + threadIdx.x];
    m = block_merge(m);
    const float mean = m.mean, scale = rsqrtf(m.squares / m.count + eps);
    const float* in = x + sample * size * (VEC ? 4 : 1);
    float* result = out + sample * size * (VEC ? 4 : 1);
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < size; i += gridDim.x * THREADS) {
        if constexpr (VEC) {
            const float4 v = __ldg(reinterpret_cast<const float4*>(in) + i);
            const float4 w = __ldg(reinterpret_cast<const float4*>(weight) + i);
            const float4 b = __ldg(reinterpret_cast<const float4*>(bias) + i);
            reinterpret_cast<float4*>(result)[i] =
                make_float4(fmaf((v.x - mean) * scale, w.x, b.x), fmaf((v.y - mean) * scale, w.y, b.y),
                            fmaf((v.z - mean) * scale, w.z, b.z), fmaf((v.w - mean) * scale, w.w, b.w));
        } else {
            result[i] = fmaf((__ldg(in + i) - mean) * scale, __ldg(weight + i), __ldg(bias + i));
        }
    }
}

template <bool VEC>
void launch(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias, torch::Tensor& out, float eps) {
    const int batch = static_cast<int>(x.size(0));
    const int size = static_cast<int>(weight.numel() / (VEC ? 4 : 1));
    const int wanted = (size + THREADS * UNROLL - 1) / (THREADS * UNROLL);
    const int slice_count = std::clamp(wanted, 1, MAX_SLICES);
    auto moments = torch::empty({batch, slice_count, 3}, x.options());
    auto* slices = reinterpret_cast<Moments*>(moments.data_ptr<float>());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    slice_moments<VEC><<<dim3(slice_count, batch), THREADS, 0, stream>>>(x.data_ptr<float>(), slices, size);
    const int blocks = std::clamp((size + THREADS * 2 - 1) / (THREADS * 2), 1, 2048);
    normalise<VEC><<<dim3(blocks, batch), THREADS, 0, stream>>>(x.data_ptr<float>(), weight.data_ptr<float>(),
                                                                bias.data_ptr<float>(), slices, out.data_ptr<float>(),
                                                                slice_count, size, eps);
}

}  // namespace

torch::Tensor forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
    auto out = torch::empty_like(x);
    if (weight.numel() % 4 == 0)
        launch<true>(x, weight, bias, out, static_cast<float>(eps));
    else
        launch<false>(x, weight, bias, out, static_cast<float>(eps));
    return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }

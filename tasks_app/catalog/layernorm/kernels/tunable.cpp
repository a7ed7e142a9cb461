// Moments of chunks by LANES independent sums, merged in double precision; threads over samples and chunks alike.
// Correct for every combination of the declared values.
#include <torch/extension.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

constexpr int LANES = 1;  // knob: 1 4 8 16 32 64
// What the sums of one chunk are kept in; chunks are merged in double precision in any case.
using Sum = double;  // knob: float double
constexpr long CHUNK = 1024;  // knob: 512 1024 4096 16384
// Elements from which a team of threads pays.
constexpr long PARALLEL_FROM = 4096;  // knob: 4096 32768 262144

struct Moments {
    double mean = 0.0, squares = 0.0;  // squares: sum of squared deviations from the mean
};

template <class Term>
Sum sum_of(long n, Term term) {
    Sum sums[LANES] = {};
    long i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; ++l) sums[l] += term(i + l);
    Sum total = 0;
    for (; i < n; ++i) total += term(i);
    for (int l = 0; l < LANES; ++l) total += sums[l];
    return total;
}

Moments chunk_moments(const float* __restrict__ x, long n) {
    const Sum mean = sum_of(n, [x](long i) { return Sum(x[i]); }) / static_cast<Sum>(n);
    return {mean, sum_of(n, [x, mean](long i) { return (x[i] - mean) * (x[i] - mean); })};
}

// Moments of a sample from those of its chunks, which are of CHUNK elements but for the last.
Moments merge(const Moments* chunks, long count, long size) {
    Moments whole;
    double before = 0.0;
    for (long c = 0; c < count; ++c) {
        const double n = static_cast<double>(std::min(CHUNK, size - c * CHUNK));
        const double delta = chunks[c].mean - whole.mean, total = before + n;
        whole.mean += delta * n / total;
        whole.squares += chunks[c].squares + delta * delta * before * n / total;
        before = total;
    }
    return whole;
}

void normalise(float* __restrict__ out, const float* __restrict__ x, const float* __restrict__ weight,
               const float* __restrict__ bias, float mean, float scale, long n) {
    for (long i = 0; i < n; ++i) out[i] = (x[i] - mean) * scale * weight[i] + bias[i];
}

}  // namespace

torch::Tensor forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
    auto out = torch::empty_like(x);
    const long batch = x.size(0), size = weight.numel();
    const long chunks = (size + CHUNK - 1) / CHUNK;
    const float *in = x.data_ptr<float>(), *w = weight.data_ptr<float>(), *b = bias.data_ptr<float>();
    float* result = out.data_ptr<float>();
    std::vector<Moments> moments(batch * chunks), samples(batch);
#pragma omp parallel if (batch * size >= PARALLEL_FROM)
    {
#pragma omp for schedule(static)
        for (long t = 0; t < batch * chunks; ++t) {
            const long first = t % chunks * CHUNK;
            moments[t] = chunk_moments(in + t / chunks * size + first, std::min(CHUNK, size - first));
        }
#pragma omp for schedule(static)
        for (long s = 0; s < batch; ++s) samples[s] = merge(&moments[s * chunks], chunks, size);
#pragma omp for schedule(static)
        for (long t = 0; t < batch * chunks; ++t) {
            const long first = t % chunks * CHUNK, at = t / chunks * size + first;
            const Moments& m = samples[t / chunks];
            normalise(result + at, in + at, w + first, b + first, static_cast<float>(m.mean),
                      static_cast<float>(1.0 / std::sqrt(m.squares / static_cast<double>(size) + eps)),
                      std::min(CHUNK, size - first));
        }
    }
    return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }

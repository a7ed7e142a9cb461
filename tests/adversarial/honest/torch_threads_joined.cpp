// abi: torch
// task: linear_relu
// workloads: cpu_b64_i128_o128
// mode: ranked
// does: to share rows between two threads, which end before it returns.
#include <torch/extension.h>

#include <algorithm>
#include <thread>

static void rows(const float* x, const float* w, const float* b, float* out, long from, long to,
                 long K, long N) {
  for (long i = from; i < to; ++i)
    for (long j = 0; j < N; ++j) {
      float sum = b[j];
      for (long k = 0; k < K; ++k) sum += x[i * K + k] * w[j * K + k];
      out[i * N + j] = std::max(sum, 0.0f);
    }
}

torch::Tensor forward(torch::Tensor x, torch::Tensor weights, torch::Tensor biases) {
  const long M = x.size(0), K = x.size(1), N = weights.size(0);
  auto out = torch::empty({M, N}, x.options());
  const float *a = x.data_ptr<float>(), *w = weights.data_ptr<float>(), *b = biases.data_ptr<float>();
  float* o = out.data_ptr<float>();
  std::thread first([=] { rows(a, w, b, o, 0, M / 2, K, N); });
  rows(a, w, b, o, M / 2, M, K, N);
  first.join();
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }

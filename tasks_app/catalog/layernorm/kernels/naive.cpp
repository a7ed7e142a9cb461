// Three plain loops a sample.
#include <torch/extension.h>

#include <cmath>

torch::Tensor forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
    auto out = torch::empty_like(x);
    const long size = weight.numel();
    const float* w = weight.data_ptr<float>();
    const float* b = bias.data_ptr<float>();
    for (long s = 0; s < x.size(0); ++s) {
        const float* in = x.data_ptr<float>() + s * size;
        float* result = out.data_ptr<float>() + s * size;
        double sum = 0.0, squares = 0.0;
        for (long i = 0; i < size; ++i) sum += in[i];
        const float mean = static_cast<float>(sum / size);
        for (long i = 0; i < size; ++i) squares += (in[i] - mean) * (in[i] - mean);
        const float scale = static_cast<float>(1.0 / std::sqrt(squares / size + eps));
        for (long i = 0; i < size; ++i) result[i] = (in[i] - mean) * scale * w[i] + b[i];
    }
    return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }

// A block a row, three passes, a tree in shared memory.
#include <torch/extension.h>

#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 128;

__global__ void gradient_rows(const float* grad_output, const float* predictions, const int64_t* targets, float* grad,
                              int batch, int classes) {
    __shared__ float scratch[THREADS];
    const float* row = predictions + blockIdx.x * (long long)classes;
    float* result = grad + blockIdx.x * (long long)classes;

    float largest = -INFINITY;
    for (int c = threadIdx.x; c < classes; c += THREADS) largest = fmaxf(largest, row[c]);
    scratch[threadIdx.x] = largest;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) scratch[threadIdx.x] = fmaxf(scratch[threadIdx.x], scratch[threadIdx.x + half]);
        __syncthreads();
    }
    largest = scratch[0];
    __syncthreads();

    float sum = 0.0f;
    for (int c = threadIdx.x; c < classes; c += THREADS) sum += expf(row[c] - largest);
    scratch[threadIdx.x] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
        __syncthreads();
    }
    sum = scratch[0];

    const int64_t target = targets[blockIdx.x];
    const float scale = *grad_output / batch;
    for (int c = threadIdx.x; c < classes; c += THREADS)
        result[c] = (expf(row[c] - largest) / sum - (c == target ? 1.0f : 0.0f)) * scale;
}

torch::Tensor backward(torch::Tensor grad_output, torch::Tensor predictions, torch::Tensor targets) {
    auto grad = torch::empty_like(predictions);
    const int batch = static_cast<int>(predictions.size(0)), classes = static_cast<int>(predictions.size(1));
    gradient_rows<<<batch, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        grad_output.data_ptr<float>(), predictions.data_ptr<float>(), targets.data_ptr<int64_t>(), grad.data_ptr<float>(),
        batch, classes);
    return grad;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("backward", &backward); }

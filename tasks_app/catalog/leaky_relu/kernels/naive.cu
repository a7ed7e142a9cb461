// One thread an element.
__global__ void leaky_relu_elements(float* output, const float* input, int N, float alpha) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= N) return;
    const float x = input[i];
    output[i] = x > 0.0f ? x : alpha * x;
}

extern "C" void leaky_RELU(float* output, const float* input, const int N, float alpha) {
    const int threads = 256;
    const unsigned blocks = (unsigned)((N + (long long)threads - 1) / threads);
    leaky_relu_elements<<<blocks, threads>>>(output, input, N, alpha);
}

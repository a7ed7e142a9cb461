// One thread an element.
__global__ void relu_elements(float* output, const float* input, int N) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= N) return;
    const float x = input[i];
    output[i] = x > 0.0f ? x : 0.0f;
}

extern "C" void RELU(float* output, const float* input, int N) {
    const int threads = 256;
    const unsigned blocks = (unsigned)((N + (long long)threads - 1) / threads);
    relu_elements<<<blocks, threads>>>(output, input, N);
}

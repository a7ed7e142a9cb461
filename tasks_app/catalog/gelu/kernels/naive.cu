// One thread an element.
__global__ void gelu_elements(float* output, const float* input, int N) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= N) return;
    const float x = input[i];
    output[i] = 0.5f * x * (1.0f + erff(x * 0.70710678f));
}

extern "C" void gelu(float* output, const float* input, const int N) {
    const int threads = 256;
    const unsigned blocks = (unsigned)((N + (long long)threads - 1) / threads);
    gelu_elements<<<blocks, threads>>>(output, input, N);
}

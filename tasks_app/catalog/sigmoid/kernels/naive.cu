// One thread an element.
__global__ void sigmoid_elements(float* out, const float* input, int N) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= N) return;
    const float x = input[i];
    out[i] = 1.0f / (1.0f + expf(-x));
}

extern "C" void sigmoid(float* out, const float* input, const int N) {
    const int threads = 256;
    const unsigned blocks = (unsigned)((N + (long long)threads - 1) / threads);
    sigmoid_elements<<<blocks, threads>>>(out, input, N);
}

// One thread an element.
__global__ void row_tanh_elements(float* out, const float* input, int N) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= N) return;
    const float x = input[i];
    out[i] = tanhf(x);
}

extern "C" void row_tanh(float* out, const float* input, const int N) {
    const int threads = 256;
    const unsigned blocks = (unsigned)((N + (long long)threads - 1) / threads);
    row_tanh_elements<<<blocks, threads>>>(out, input, N);
}

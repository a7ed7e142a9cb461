// One thread an element.
__global__ void swiglu_elements(float* output, const float* gate_input, const float* value_input, float beta,
                                int N) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= N) return;
    const float gate = gate_input[i];
    const float swish = gate / (1.0f + expf(-beta * gate));
    output[i] = swish * value_input[i];
}

extern "C" void SwiGLU(float* output, const float* gate_input, const float* value_input, float beta, int N) {
    const int threads = 256;
    const unsigned blocks = (unsigned)((N + (long long)threads - 1) / threads);
    swiglu_elements<<<blocks, threads>>>(output, gate_input, value_input, beta, N);
}

// One thread an element.
__global__ void add_elements(const float* A, const float* B, float* C, int N) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < N) C[i] = A[i] + B[i];
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
    const int threads = 256;
    const unsigned blocks = (unsigned)((N + (long long)threads - 1) / threads);
    add_elements<<<blocks, threads>>>(A, B, C, N);
}

// One thread an element.
__global__ void scale_elements(const float* A, float* B, float scalar, long long count) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < count) B[i] = scalar * A[i];
}

extern "C" void matrix_scalar_mul(const float* A, float* B, float scalar, int M, int N) {
    const int threads = 256;
    const long long count = (long long)M * N;
    scale_elements<<<(unsigned)((count + threads - 1) / threads), threads>>>(A, B, scalar, count);
}

// One thread an element of C, reading its row of A and its column of B from global memory.
__global__ void multiply(const float* A, const float* B, float* C, int M, int N, int K) {
    const long long column = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (column >= N) return;
    for (long long row = blockIdx.y * (long long)blockDim.y + threadIdx.y; row < M;
         row += (long long)gridDim.y * blockDim.y) {
        float sum = 0.0f;
        for (long long k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + column];
        C[row * N + column] = sum;
    }
}

extern "C" void matrix_mul(const float* A, const float* B, float* C, int M, int N, int K) {
    const dim3 threads(32, 8);
    const unsigned rows = (M + threads.y - 1) / threads.y;
    const dim3 blocks((N + threads.x - 1) / threads.x, rows < 65535u ? rows : 65535u);
    multiply<<<blocks, threads>>>(A, B, C, M, N, K);
}

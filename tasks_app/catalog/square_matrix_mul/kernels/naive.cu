// One thread an element of C, reading its row of A and its column of B from global memory.
__global__ void multiply(const float* A, const float* B, float* C, int M) {
    const long long column = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    const long long row = blockIdx.y * (long long)blockDim.y + threadIdx.y;
    if (column >= M || row >= M) return;
    float sum = 0.0f;
    for (long long k = 0; k < M; ++k) sum += A[row * M + k] * B[k * M + column];
    C[row * M + column] = sum;
}

extern "C" void square_matrix_mul(float* A, float* B, float* C, int M) {
    const dim3 threads(32, 8);
    const dim3 blocks((M + threads.x - 1) / threads.x, (M + threads.y - 1) / threads.y);
    multiply<<<blocks, threads>>>(A, B, C, M);
}

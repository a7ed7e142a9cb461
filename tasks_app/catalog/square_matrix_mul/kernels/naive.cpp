// Three loops, the innermost along the rows of B and C.
extern "C" void square_matrix_mul(float* A, float* B, float* C, int M) {
    for (long i = 0; i < M; ++i) {
        for (long j = 0; j < M; ++j) C[i * M + j] = 0.0f;
        for (long k = 0; k < M; ++k) {
            const float a = A[i * M + k];
            for (long j = 0; j < M; ++j) C[i * M + j] += a * B[k * M + j];
        }
    }
}

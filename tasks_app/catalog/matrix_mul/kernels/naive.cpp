// Three loops, the innermost along the rows of B and C.
extern "C" void matrix_mul(const float* A, const float* B, float* C, int M, int N, int K) {
    for (long i = 0; i < M; ++i) {
        for (long j = 0; j < N; ++j) C[i * N + j] = 0.0f;
        for (long k = 0; k < K; ++k) {
            const float a = A[i * K + k];
            for (long j = 0; j < N; ++j) C[i * N + j] += a * B[k * N + j];
        }
    }
}

// Two plain loops, reading along the rows of A.
extern "C" void matrix_transpose(const float* A, float* B, int M, int N) {
    for (long i = 0; i < M; ++i)
        for (long j = 0; j < N; ++j) B[j * M + i] = A[i * N + j];
}

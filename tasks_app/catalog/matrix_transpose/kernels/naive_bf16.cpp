// Two plain loops, reading along the rows of A.
extern "C" void matrix_transpose_bf16(const __nv_bfloat16* A, __nv_bfloat16* B, int M, int N) {
    for (long i = 0; i < M; ++i)
        for (long j = 0; j < N; ++j) B[j * M + i] = A[i * N + j];
}

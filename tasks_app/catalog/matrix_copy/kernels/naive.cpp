// One plain loop.
extern "C" void matrix_copy(float* A, float* B, int M, int N) {
    const long count = static_cast<long>(M) * N;
    for (long i = 0; i < count; ++i) B[i] = A[i];
}

// One plain loop.
extern "C" void matrix_scalar_mul(const float* A, float* B, float scalar, int M, int N) {
    const long count = static_cast<long>(M) * N;
    for (long i = 0; i < count; ++i) B[i] = scalar * A[i];
}

// One serial sum a row.
extern "C" void matrix_vector_mul(const float* A, const float* x, float* y, int M, int N) {
    for (long row = 0; row < M; ++row) {
        float sum = 0.0f;
        for (long k = 0; k < N; ++k) sum += A[row * N + k] * x[k];
        y[row] = sum;
    }
}

// One serial sum a row, in float32.
extern "C" void matrix_vector_mul_bf16(const __nv_bfloat16* A, const __nv_bfloat16* x, __nv_bfloat16* y, int M, int N) {
    for (long row = 0; row < M; ++row) {
        float sum = 0.0f;
        for (long k = 0; k < N; ++k) sum += __bfloat162float(A[row * N + k]) * __bfloat162float(x[k]);
        y[row] = __float2bfloat16(sum);
    }
}

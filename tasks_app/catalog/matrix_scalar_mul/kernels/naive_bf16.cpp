// One plain loop.
extern "C" void matrix_scalar_mul_bf16(const __nv_bfloat16* A, __nv_bfloat16* B, __nv_bfloat16 scalar, int M, int N) {
    const long count = static_cast<long>(M) * N;
    const float factor = __bfloat162float(scalar);
    for (long i = 0; i < count; ++i) B[i] = __float2bfloat16(factor * __bfloat162float(A[i]));
}

// Three loops over strips of C, whose sums are kept in float32; the innermost along the rows of B.
extern "C" void square_matrix_mul_bf16(__nv_bfloat16* A, __nv_bfloat16* B, __nv_bfloat16* C, int M) {
    constexpr long STRIP = 256;
    for (long i = 0; i < M; ++i) {
        for (long first = 0; first < M; first += STRIP) {
            const long width = M - first < STRIP ? M - first : STRIP;
            float sums[STRIP] = {};
            for (long k = 0; k < M; ++k) {
                const float a = __bfloat162float(A[i * M + k]);
                for (long j = 0; j < width; ++j) sums[j] += a * __bfloat162float(B[k * M + first + j]);
            }
            for (long j = 0; j < width; ++j) C[i * M + first + j] = __float2bfloat16(sums[j]);
        }
    }
}

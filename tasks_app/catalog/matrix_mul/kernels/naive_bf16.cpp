// Three loops over strips of C, whose sums are kept in float32; the innermost along the rows of B.
extern "C" void matrix_mul_bf16(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K) {
    constexpr long STRIP = 256;
    for (long i = 0; i < M; ++i) {
        for (long first = 0; first < N; first += STRIP) {
            const long width = N - first < STRIP ? N - first : STRIP;
            float sums[STRIP] = {};
            for (long k = 0; k < K; ++k) {
                const float a = __bfloat162float(A[i * K + k]);
                for (long j = 0; j < width; ++j) sums[j] += a * __bfloat162float(B[k * N + first + j]);
            }
            for (long j = 0; j < width; ++j) C[i * N + first + j] = __float2bfloat16(sums[j]);
        }
    }
}

// One plain loop.
extern "C" void vector_add_bf16(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int N) {
    for (int i = 0; i < N; ++i) C[i] = __float2bfloat16(__bfloat162float(A[i]) + __bfloat162float(B[i]));
}

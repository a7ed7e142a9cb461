// One plain loop.
extern "C" void reverse_array_bf16(__nv_bfloat16* output, __nv_bfloat16* input, int N) {
    for (int i = 0; i < N; ++i) output[i] = input[N - 1 - i];
}

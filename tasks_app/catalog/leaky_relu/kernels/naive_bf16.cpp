// One plain loop.
extern "C" void leaky_RELU_bf16(__nv_bfloat16* output, const __nv_bfloat16* input, const int N, float alpha) {
    for (int i = 0; i < N; ++i) {
        const float x = __bfloat162float(input[i]);
        output[i] = __float2bfloat16(x > 0.0f ? x : alpha * x);
    }
}

// Two plain loops.
extern "C" void conv_1d_bf16(const __nv_bfloat16* input, const __nv_bfloat16* kernel, __nv_bfloat16* output, int input_size,
                             int kernel_size) {
    for (long i = 0; i <= input_size - kernel_size; ++i) {
        float sum = 0.0f;
        for (int j = 0; j < kernel_size; ++j) sum += __bfloat162float(input[i + j]) * __bfloat162float(kernel[j]);
        output[i] = __float2bfloat16(sum);
    }
}

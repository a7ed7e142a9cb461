// Four plain loops.
extern "C" void conv_2d_bf16(const __nv_bfloat16* input, const __nv_bfloat16* kernel, __nv_bfloat16* output, int input_rows, int input_cols,
                             int kernel_rows, int kernel_cols) {
    const long rows = input_rows - kernel_rows + 1, cols = input_cols - kernel_cols + 1;
    for (long y = 0; y < rows; ++y) {
        for (long x = 0; x < cols; ++x) {
            float sum = 0.0f;
            for (int m = 0; m < kernel_rows; ++m)
                for (int n = 0; n < kernel_cols; ++n)
                    sum += __bfloat162float(input[(y + m) * input_cols + x + n]) * __bfloat162float(kernel[m * (long long)kernel_cols + n]);
            output[y * cols + x] = __float2bfloat16(sum);
        }
    }
}

// Two plain loops.
extern "C" void conv_1d(const float* input, const float* kernel, float* output, int input_size, int kernel_size) {
    for (long i = 0; i <= input_size - kernel_size; ++i) {
        float sum = 0.0f;
        for (int j = 0; j < kernel_size; ++j) sum += input[i + j] * kernel[j];
        output[i] = sum;
    }
}

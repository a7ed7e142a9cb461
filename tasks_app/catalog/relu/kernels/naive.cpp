// One plain loop.
extern "C" void RELU(float* output, const float* input, int N) {
    for (int i = 0; i < N; ++i) {
        const float x = input[i];
        output[i] = x > 0.0f ? x : 0.0f;
    }
}

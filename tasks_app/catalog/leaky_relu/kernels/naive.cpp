// One plain loop.
extern "C" void leaky_RELU(float* output, const float* input, const int N, float alpha) {
    for (int i = 0; i < N; ++i) {
        const float x = input[i];
        output[i] = x > 0.0f ? x : alpha * x;
    }
}

// One plain loop.
extern "C" void reverse_array(float* output, float* input, int N) {
    for (int i = 0; i < N; ++i) output[i] = input[N - 1 - i];
}

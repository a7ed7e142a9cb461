// Clear the bins, then count.
extern "C" void histogram(const int* input, int* histogram, int N, int bins) {
    for (int b = 0; b < bins; ++b) histogram[b] = 0;
    for (int i = 0; i < N; ++i) ++histogram[input[i]];
}

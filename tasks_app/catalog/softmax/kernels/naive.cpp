// Three plain passes over each row.
#include <cmath>

extern "C" void softmax(float* out, const float* input, int N, int C) {
    for (long r = 0; r < N; ++r) {
        const float* row = input + r * C;
        float* result = out + r * C;
        float largest = row[0];
        for (int c = 1; c < C; ++c) largest = std::fmax(largest, row[c]);
        float sum = 0.0f;
        for (int c = 0; c < C; ++c) {
            result[c] = std::exp(row[c] - largest);
            sum += result[c];
        }
        for (int c = 0; c < C; ++c) result[c] /= sum;
    }
}

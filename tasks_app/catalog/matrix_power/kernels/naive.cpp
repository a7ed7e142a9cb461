// P - 1 products, one after the other, that write B and scratch memory in turn; the last one writes B.
#include <vector>

namespace {

void multiply(const float* left, const float* right, float* out, long n) {
    std::vector<float> sums(n);
    for (long i = 0; i < n; ++i) {
        for (long j = 0; j < n; ++j) sums[j] = 0.0f;
        for (long k = 0; k < n; ++k) {
            const float a = left[i * n + k];
            for (long j = 0; j < n; ++j) sums[j] += a * right[k * n + j];
        }
        for (long j = 0; j < n; ++j) out[i * n + j] = sums[j];
    }
}

}  // namespace

extern "C" void matrix_power(const float* A, float* B, int N, int P) {
    const long count = static_cast<long>(N) * N;
    if (P == 1) {
        for (long i = 0; i < count; ++i) B[i] = A[i];
        return;
    }
    std::vector<float> scratch(P > 2 ? count : 0);
    const float* power = A;
    for (int p = 2; p <= P; ++p) {
        float* next = (P - p) % 2 == 0 ? B : scratch.data();
        multiply(power, A, next, N);
        power = next;
    }
}

// P - 1 products, one after the other, that write B and scratch memory in turn; the last one writes B. Sums are in float32, powers in BF16.
#include <vector>

namespace {

void multiply(const __nv_bfloat16* left, const __nv_bfloat16* right, __nv_bfloat16* out, long n) {
    std::vector<float> sums(n);
    for (long i = 0; i < n; ++i) {
        for (long j = 0; j < n; ++j) sums[j] = 0.0f;
        for (long k = 0; k < n; ++k) {
            const float a = __bfloat162float(left[i * n + k]);
            for (long j = 0; j < n; ++j) sums[j] += a * __bfloat162float(right[k * n + j]);
        }
        for (long j = 0; j < n; ++j) out[i * n + j] = __float2bfloat16(sums[j]);
    }
}

}  // namespace

extern "C" void matrix_power_bf16(const __nv_bfloat16* A, __nv_bfloat16* B, int N, int P) {
    const long count = static_cast<long>(N) * N;
    if (P == 1) {
        for (long i = 0; i < count; ++i) B[i] = A[i];
        return;
    }
    std::vector<__nv_bfloat16> scratch(P > 2 ? count : 0);
    const __nv_bfloat16* power = A;
    for (int p = 2; p <= P; ++p) {
        __nv_bfloat16* next = (P - p) % 2 == 0 ? B : scratch.data();
        multiply(power, A, next, N);
        power = next;
    }
}

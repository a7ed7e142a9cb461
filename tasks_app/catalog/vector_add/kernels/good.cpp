// SIMD over the elements, threads once there is enough to share.
namespace {
constexpr int PARALLEL_FROM = 1 << 16;  // below this a thread team costs more than it saves
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
    const float* __restrict__ a = A;
    const float* __restrict__ b = B;
    float* __restrict__ c = C;
    if (N < PARALLEL_FROM) {
#pragma omp simd
        for (int i = 0; i < N; ++i) c[i] = a[i] + b[i];
        return;
    }
#pragma omp parallel for simd schedule(static)
    for (int i = 0; i < N; ++i) c[i] = a[i] + b[i];
}

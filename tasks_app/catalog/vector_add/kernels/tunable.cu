// Packs of one, two or four elements, UNROLL of them in flight a thread; as many blocks as there is work, or a fixed number that
// goes round. Every declared combination is correct.
#include <cuda_runtime.h>

namespace {

constexpr int THREADS = 64;  // knob: 64 128 256 512 1024
// What a load takes.
using Pack = float;  // knob: float float2 float4
// Loads of each input in flight a thread.
constexpr int UNROLL = 1;  // knob: 1 2 4 8
// Blocks at most; those beyond go round.
constexpr int MAX_BLOCKS = 2147483647;  // knob: 1024 4096 16384 2147483647
// How memory is read and written: as usual, or marked as not to be needed again.
constexpr bool STREAM = false;  // knob: false true

constexpr int VECTOR = sizeof(Pack) / sizeof(float);

[[maybe_unused]] __device__ float add(float a, float b) { return a + b; }
[[maybe_unused]] __device__ float2 add(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
[[maybe_unused]] __device__ float4 add(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

__device__ Pack load(const Pack* p) { return STREAM ? __ldcs(p) : __ldg(p); }

__global__ void __launch_bounds__(THREADS)
add_all(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    const int count = N / VECTOR;
    const long long step = (long long)gridDim.x * THREADS;
    const long long me = blockIdx.x * (long long)THREADS + threadIdx.x;
    const Pack *a = reinterpret_cast<const Pack*>(A), *b = reinterpret_cast<const Pack*>(B);
    Pack* c = reinterpret_cast<Pack*>(C);
    for (long long i = me; i < count; i += step * UNROLL) {
        Pack x[UNROLL], y[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            if (i + j * step >= count) continue;
            x[j] = load(a + i + j * step);
            y[j] = load(b + i + j * step);
        }
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            if (i + j * step >= count) continue;
            if constexpr (STREAM)
                __stcs(c + i + j * step, add(x[j], y[j]));
            else
                c[i + j * step] = add(x[j], y[j]);
        }
    }
    const long long tail = (long long)count * VECTOR + me;
    if (tail < N) C[tail] = A[tail] + B[tail];
}

}  // namespace

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
    constexpr long long PER_BLOCK = (long long)THREADS * VECTOR * UNROLL;
    const long long wanted = (N + PER_BLOCK - 1) / PER_BLOCK;
    add_all<<<(unsigned)(wanted < MAX_BLOCKS ? wanted : MAX_BLOCKS), THREADS>>>(A, B, C, N);
}

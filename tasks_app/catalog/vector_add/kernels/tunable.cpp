// LANES additions at a time, stored through the caches or past them; long vectors in chunks that threads share.
// Correct for every combination of the declared values.
#include <algorithm>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace {

constexpr int LANES = 4;  // knob: 4 8 16 32 64
// Elements that a thread takes at a time, and elements from which a team of threads pays.
constexpr int CHUNK = 1024;  // knob: 1024 4096 16384 65536
constexpr int PARALLEL_FROM = 1024;  // knob: 1024 16384 65536 1048576
// Floats ahead at which both inputs are asked for; 0: not at all.
constexpr int PREFETCH = 0;  // knob: 0 64 256 1024
// Elements from which stores go past the caches, which spares reading what they overwrite.
constexpr int STREAM_FROM = 2147483647;  // knob: 0 65536 1048576 2147483647

static_assert(CHUNK % LANES == 0 && LANES % 4 == 0, "a chunk is whole groups of LANES, and a group whole stores of four");

template <bool STREAM>
void store(float* out, const float* sums) {
#if defined(__SSE2__)
    if constexpr (STREAM) {
        for (int l = 0; l < LANES; l += 4) _mm_stream_ps(out + l, _mm_loadu_ps(sums + l));
        return;
    }
#endif
    for (int l = 0; l < LANES; ++l) out[l] = sums[l];
}

template <bool STREAM>
void add(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n) {
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        if constexpr (PREFETCH > 0) {
            __builtin_prefetch(a + i + PREFETCH);
            __builtin_prefetch(b + i + PREFETCH);
        }
        float sums[LANES];
        for (int l = 0; l < LANES; ++l) sums[l] = a[i + l] + b[i + l];
        store<STREAM>(c + i, sums);
    }
    for (; i < n; ++i) c[i] = a[i] + b[i];
#if defined(__SSE2__)
    if constexpr (STREAM) _mm_sfence();
#endif
}

void add_any(const float* a, const float* b, float* c, int n, bool stream) {
    if (stream)
        add<true>(a, b, c, n);
    else
        add<false>(a, b, c, n);
}

}  // namespace

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
    const bool stream = N >= STREAM_FROM && reinterpret_cast<std::uintptr_t>(C) % 16 == 0;
    if (N < PARALLEL_FROM) {
        add_any(A, B, C, N, stream);
        return;
    }
    const long chunks = (static_cast<long>(N) + CHUNK - 1) / CHUNK;
#pragma omp parallel for schedule(static)
    for (long chunk = 0; chunk < chunks; ++chunk) {
        const long low = chunk * CHUNK;
        add_any(A + low, B + low, C + low, static_cast<int>(std::min<long>(CHUNK, N - low)), stream);
    }
}

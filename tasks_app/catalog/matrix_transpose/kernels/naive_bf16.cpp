// Plain loops over strips of A's rows, so that what is written next to each other fills the cache's lines.
#include <algorithm>

extern "C" void matrix_transpose_bf16(const __nv_bfloat16* A, __nv_bfloat16* B, int M, int N) {
    const long strip = 32;
    for (long first = 0; first < M; first += strip)
        for (long j = 0; j < N; ++j)
            for (long i = first; i < std::min<long>(first + strip, M); ++i) B[j * M + i] = A[i * N + j];
}

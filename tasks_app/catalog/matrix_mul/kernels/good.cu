// Tiles of C in registers, tiles of A and B in double-buffered shared memory, K split over blocks when C has few tiles.
#include <cuda_runtime.h>

namespace {

constexpr int PAD = 4;  // keeps the transposed stores of A off a single bank, and rows 16-byte aligned

// Four consecutive elements of a row-major matrix; zeros outside of it. VEC: the row stride is a multiple of four.
template <bool VEC>
__device__ __forceinline__ float4 load4(const float* __restrict__ p, int row, int col, int row_end, int col_end, int stride) {
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row >= row_end) return v;
    const float* q = p + (long long)row * stride + col;
    if (VEC) {
        if (col < col_end) v = __ldg(reinterpret_cast<const float4*>(q));
    } else {
        if (col < col_end) v.x = __ldg(q);
        if (col + 1 < col_end) v.y = __ldg(q + 1);
        if (col + 2 < col_end) v.z = __ldg(q + 2);
        if (col + 3 < col_end) v.w = __ldg(q + 3);
    }
    return v;
}

// Tiles are BK deep. A block of 256 threads computes a BM x BN tile; a thread (TM / 4) x (TN / 4) squares of 4 x 4 elements.
// Each block takes the depths [z * depth, (z + 1) * depth) of K; with SPLIT it adds its part to C atomically.
template <int BM, int BN, int BK, int TM, int TN, bool VEC, bool SPLIT>
__global__ void __launch_bounds__((BM / TM) * (BN / TN), 2)
multiply(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K, int depth) {
    constexpr int THREADS = (BM / TM) * (BN / TN);
    constexpr int A_LOADS = BM * BK / 4 / THREADS;
    constexpr int B_LOADS = BK * BN / 4 / THREADS;
    constexpr int ROW_STEP = BM / (TM / 4);
    constexpr int COL_STEP = BN / (TN / 4);
    __shared__ __align__(16) float as[2][BK][BM + PAD];
    __shared__ __align__(16) float bs[2][BK][BN];

    const int tid = threadIdx.x;
    const int tiles_n = (N + BN - 1) / BN;
    const int row0 = (blockIdx.x / tiles_n) * BM;
    const int col0 = (blockIdx.x % tiles_n) * BN;
    const int k_begin = blockIdx.z * depth;
    const int k_end = min(K, k_begin + depth);
    const int my_row = tid / (BN / TN) * 4;
    const int my_col = tid % (BN / TN) * 4;

    float4 a_next[A_LOADS], b_next[B_LOADS];
    auto fetch = [&](int k0) {
#pragma unroll
        for (int j = 0; j < A_LOADS; ++j) {
            const int i = tid + j * THREADS;
            a_next[j] = load4<VEC>(A, row0 + i / (BK / 4), k0 + i % (BK / 4) * 4, M, k_end, K);
        }
#pragma unroll
        for (int j = 0; j < B_LOADS; ++j) {
            const int i = tid + j * THREADS;
            b_next[j] = load4<VEC>(B, k0 + i / (BN / 4), col0 + i % (BN / 4) * 4, k_end, N, N);
        }
    };
    auto stage = [&](int buffer) {
#pragma unroll
        for (int j = 0; j < A_LOADS; ++j) {
            const int i = tid + j * THREADS;
            const int row = i / (BK / 4), k = i % (BK / 4) * 4;
            as[buffer][k][row] = a_next[j].x;
            as[buffer][k + 1][row] = a_next[j].y;
            as[buffer][k + 2][row] = a_next[j].z;
            as[buffer][k + 3][row] = a_next[j].w;
        }
#pragma unroll
        for (int j = 0; j < B_LOADS; ++j) {
            const int i = tid + j * THREADS;
            *reinterpret_cast<float4*>(&bs[buffer][i / (BN / 4)][i % (BN / 4) * 4]) = b_next[j];
        }
    };

    float acc[TM][TN] = {};
    fetch(k_begin);
    stage(0);
    __syncthreads();
    int buffer = 0;
    for (int k0 = k_begin; k0 < k_end; k0 += BK) {
        const bool more = k0 + BK < k_end;
        if (more) fetch(k0 + BK);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
#pragma unroll
            for (int s = 0; s < TM / 4; ++s)
                *reinterpret_cast<float4*>(&a[s * 4]) = *reinterpret_cast<const float4*>(&as[buffer][k][my_row + s * ROW_STEP]);
#pragma unroll
            for (int s = 0; s < TN / 4; ++s)
                *reinterpret_cast<float4*>(&b[s * 4]) = *reinterpret_cast<const float4*>(&bs[buffer][k][my_col + s * COL_STEP]);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
        }
        if (more) stage(buffer ^ 1);
        __syncthreads();
        buffer ^= 1;
    }

#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = row0 + my_row + i / 4 * ROW_STEP + i % 4;
        if (row >= M) continue;
#pragma unroll
        for (int s = 0; s < TN / 4; ++s) {
            const int col = col0 + my_col + s * COL_STEP;
            float* c = C + (long long)row * N + col;
            if constexpr (VEC && !SPLIT) {
                if (col < N)
                    *reinterpret_cast<float4*>(c) =
                        make_float4(acc[i][s * 4], acc[i][s * 4 + 1], acc[i][s * 4 + 2], acc[i][s * 4 + 3]);
            } else {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    if (col + j >= N) continue;
                    if (SPLIT)
                        atomicAdd(c + j, acc[i][s * 4 + j]);
                    else
                        c[j] = acc[i][s * 4 + j];
                }
            }
        }
    }
}

int processors() {
    static const int count = [] {
        int device = 0, value = 1;
        cudaGetDevice(&device);
        cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, device);
        return value;
    }();
    return count;
}

long long tiles(long long M, long long N, int bm, int bn) { return ((M + bm - 1) / bm) * ((N + bn - 1) / bn); }

template <int BM, int BN, int BK, int TM, int TN, bool VEC>
void launch(const float* A, const float* B, float* C, int M, int N, int K) {
    constexpr int THREADS = (BM / TM) * (BN / TN);
    const long long blocks = tiles(M, N, BM, BN);
    const int steps = (K + BK - 1) / BK;
    long long splits = 2 * processors() / blocks;
    if (splits > K / 128) splits = K / 128;  // a block should have some depth to work through
    if (splits < 2) {
        multiply<BM, BN, BK, TM, TN, VEC, false><<<dim3((unsigned)blocks), THREADS>>>(A, B, C, M, N, K, steps * BK);
        return;
    }
    const int depth = (int)((steps + splits - 1) / splits) * BK;
    const unsigned parts = (K + depth - 1) / depth;
    cudaMemsetAsync(C, 0, sizeof(float) * (size_t)M * N);
    multiply<BM, BN, BK, TM, TN, VEC, true><<<dim3((unsigned)blocks, 1, parts), THREADS>>>(A, B, C, M, N, K, depth);
}

template <bool VEC>
void choose(const float* A, const float* B, float* C, int M, int N, int K) {
    if (tiles(M, N, 128, 128) >= processors())
        launch<128, 128, 8, 8, 8, VEC>(A, B, C, M, N, K);
    else
        launch<64, 64, 16, 4, 4, VEC>(A, B, C, M, N, K);
}

}  // namespace

extern "C" void matrix_mul(const float* A, const float* B, float* C, int M, int N, int K) {
    if (N % 4 == 0 && K % 4 == 0)
        choose<true>(A, B, C, M, N, K);
    else
        choose<false>(A, B, C, M, N, K);
}

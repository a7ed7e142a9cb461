// A block computes a TILE_M x TILE_N tile of C, a thread ROWS x COLS of it in registers, from double-buffered tiles of A
// and B in shared memory that are TILE_K deep. Combinations that do not fit a block are refused by a static_assert.
#include <cuda_runtime.h>

namespace {

constexpr int TILE_M = 32;  // knob: 32 64 128 256
constexpr int TILE_N = 32;  // knob: 32 64 128 256
constexpr int TILE_K = 8;  // knob: 8 16 32
constexpr int ROWS = 4;  // knob: 4 8 16
constexpr int COLS = 4;  // knob: 4 8 16
// K is split over blocks until there are that many for each multiprocessor; 0: never.
constexpr int BLOCKS_PER_SM = 0;  // knob: 0 1 2 4 8

constexpr int PAD = 4;  // keeps the transposed stores of A off a single bank, and rows 16-byte aligned
constexpr int THREADS = (TILE_M / ROWS) * (TILE_N / COLS);
constexpr int SHARED_BYTES = 2 * TILE_K * (TILE_M + PAD + TILE_N) * (int)sizeof(float);

static_assert(THREADS >= 32 && THREADS <= 1024, "TILE_M / ROWS * TILE_N / COLS threads must be 32 to 1024");
static_assert(SHARED_BYTES <= 48 * 1024, "the tiles of A and B must fit 48 KiB of shared memory");
static_assert(ROWS * COLS <= 128, "the sums of a thread must fit its registers");

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

// Each block takes the depths [z * depth, (z + 1) * depth) of K; with SPLIT it adds its part to C atomically.
template <bool VEC, bool SPLIT>
__global__ void __launch_bounds__(THREADS)
multiply(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K, int depth) {
    constexpr int A_QUADS = TILE_M * TILE_K / 4, A_LOADS = (A_QUADS + THREADS - 1) / THREADS;
    constexpr int B_QUADS = TILE_K * TILE_N / 4, B_LOADS = (B_QUADS + THREADS - 1) / THREADS;
    constexpr int ROW_STEP = TILE_M / (ROWS / 4);  // a thread has ROWS / 4 x COLS / 4 squares of 4 x 4, these steps apart
    constexpr int COL_STEP = TILE_N / (COLS / 4);
    __shared__ __align__(16) float as[2][TILE_K][TILE_M + PAD];
    __shared__ __align__(16) float bs[2][TILE_K][TILE_N];

    const int tid = threadIdx.x;
    const int tiles_n = (N + TILE_N - 1) / TILE_N;
    const int row0 = (blockIdx.x / tiles_n) * TILE_M;
    const int col0 = (blockIdx.x % tiles_n) * TILE_N;
    const int k_begin = blockIdx.z * depth;
    const int k_end = min(K, k_begin + depth);
    const int my_row = tid / (TILE_N / COLS) * 4;
    const int my_col = tid % (TILE_N / COLS) * 4;

    float4 a_next[A_LOADS], b_next[B_LOADS];
    auto fetch = [&](int k0) {
#pragma unroll
        for (int j = 0; j < A_LOADS; ++j) {
            const int i = tid + j * THREADS;
            if (i < A_QUADS) a_next[j] = load4<VEC>(A, row0 + i / (TILE_K / 4), k0 + i % (TILE_K / 4) * 4, M, k_end, K);
        }
#pragma unroll
        for (int j = 0; j < B_LOADS; ++j) {
            const int i = tid + j * THREADS;
            if (i < B_QUADS) b_next[j] = load4<VEC>(B, k0 + i / (TILE_N / 4), col0 + i % (TILE_N / 4) * 4, k_end, N, N);
        }
    };
    auto stage = [&](int buffer) {
#pragma unroll
        for (int j = 0; j < A_LOADS; ++j) {
            const int i = tid + j * THREADS;
            if (i >= A_QUADS) continue;
            const int row = i / (TILE_K / 4), k = i % (TILE_K / 4) * 4;
            as[buffer][k][row] = a_next[j].x;
            as[buffer][k + 1][row] = a_next[j].y;
            as[buffer][k + 2][row] = a_next[j].z;
            as[buffer][k + 3][row] = a_next[j].w;
        }
#pragma unroll
        for (int j = 0; j < B_LOADS; ++j) {
            const int i = tid + j * THREADS;
            if (i < B_QUADS) *reinterpret_cast<float4*>(&bs[buffer][i / (TILE_N / 4)][i % (TILE_N / 4) * 4]) = b_next[j];
        }
    };

    float acc[ROWS][COLS] = {};
    fetch(k_begin);
    stage(0);
    __syncthreads();
    int buffer = 0;
    for (int k0 = k_begin; k0 < k_end; k0 += TILE_K) {
        const bool more = k0 + TILE_K < k_end;
        if (more) fetch(k0 + TILE_K);
#pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            float a[ROWS], b[COLS];
#pragma unroll
            for (int s = 0; s < ROWS / 4; ++s)
                *reinterpret_cast<float4*>(&a[s * 4]) = *reinterpret_cast<const float4*>(&as[buffer][k][my_row + s * ROW_STEP]);
#pragma unroll
            for (int s = 0; s < COLS / 4; ++s)
                *reinterpret_cast<float4*>(&b[s * 4]) = *reinterpret_cast<const float4*>(&bs[buffer][k][my_col + s * COL_STEP]);
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
#pragma unroll
                for (int j = 0; j < COLS; ++j) acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
        }
        if (more) stage(buffer ^ 1);
        __syncthreads();
        buffer ^= 1;
    }

#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const int row = row0 + my_row + i / 4 * ROW_STEP + i % 4;
        if (row >= M) continue;
#pragma unroll
        for (int j = 0; j < COLS; ++j) {
            const int col = col0 + my_col + j / 4 * COL_STEP + j % 4;
            if (col >= N) continue;
            float* c = C + (long long)row * N + col;
            if (SPLIT)
                atomicAdd(c, acc[i][j]);
            else
                *c = acc[i][j];
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

template <bool VEC>
void launch(const float* A, const float* B, float* C, int M, int N, int K) {
    const long long blocks = ((M + TILE_M - 1LL) / TILE_M) * ((N + TILE_N - 1LL) / TILE_N);
    const int steps = (K + TILE_K - 1) / TILE_K;
    long long splits = (long long)BLOCKS_PER_SM * processors() / blocks;
    if (splits > K / 128) splits = K / 128;  // a block should have some depth to work through
    if (splits < 2) {
        multiply<VEC, false><<<dim3((unsigned)blocks), THREADS>>>(A, B, C, M, N, K, steps * TILE_K);
        return;
    }
    const int depth = (int)((steps + splits - 1) / splits) * TILE_K;
    const unsigned parts = (K + depth - 1) / depth;
    cudaMemsetAsync(C, 0, sizeof(float) * (size_t)M * N);
    multiply<VEC, true><<<dim3((unsigned)blocks, 1, parts), THREADS>>>(A, B, C, M, N, K, depth);
}

}  // namespace

extern "C" void matrix_mul(const float* A, const float* B, float* C, int M, int N, int K) {
    if (N % 4 == 0 && K % 4 == 0)
        launch<true>(A, B, C, M, N, K);
    else
        launch<false>(A, B, C, M, N, K);
}

// Register tiles over double-buffered shared memory. Where the output has few tiles, K is split over blocks that leave
// their parts in a workspace, and a second launch adds them up, adds the bias and rectifies.
#include <torch/extension.h>

#include <algorithm>
#include <c10/cuda/CUDAStream.h>

namespace {

constexpr int PAD = 4;  // keeps the transposed stores off a single bank, and rows 16-byte aligned

// Four consecutive elements of a row; zeros outside. VEC: the row stride is a multiple of four.
template <bool VEC>
__device__ __forceinline__ float4 load4(const float* __restrict__ p, int row, int col, int row_end, int col_end, int stride) {
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row >= row_end) return v;
    const float* q = p + (long long)row * stride + col;
    if constexpr (VEC) {
        if (col < col_end) v = __ldg(reinterpret_cast<const float4*>(q));
    } else {
        if (col < col_end) v.x = __ldg(q);
        if (col + 1 < col_end) v.y = __ldg(q + 1);
        if (col + 2 < col_end) v.z = __ldg(q + 2);
        if (col + 3 < col_end) v.w = __ldg(q + 3);
    }
    return v;
}

// Loads a TILE x BK piece of a row-major matrix and stores it transposed, in two steps around the arithmetic.
template <int TILE, int BK, int THREADS, bool VEC>
struct Loader {
    static constexpr int LOADS = TILE * BK / 4 / THREADS;
    float4 next[LOADS];

    __device__ __forceinline__ void fetch(const float* p, int row0, int k0, int row_end, int k_end, int stride) {
#pragma unroll
        for (int j = 0; j < LOADS; ++j) {
            const int i = threadIdx.x + j * THREADS;
            next[j] = load4<VEC>(p, row0 + i / (BK / 4), k0 + i % (BK / 4) * 4, row_end, k_end, stride);
        }
    }
    __device__ __forceinline__ void stage(float (*tile)[TILE + PAD]) const {
#pragma unroll
        for (int j = 0; j < LOADS; ++j) {
            const int i = threadIdx.x + j * THREADS;
            const int row = i / (BK / 4), k = i % (BK / 4) * 4;
            tile[k][row] = next[j].x;
            tile[k + 1][row] = next[j].y;
            tile[k + 2][row] = next[j].z;
            tile[k + 3][row] = next[j].w;
        }
    }
};

// 256 or fewer threads compute a BM x BN tile of x @ weights^T over the depths [z * depth, (z + 1) * depth).
// SPLIT: the sums go to workspace[z]; else the bias is added and the result rectified.
template <int BM, int BN, int BK, int TM, int TN, bool VEC, bool SPLIT>
__global__ void __launch_bounds__((BM / TM) * (BN / TN))
multiply(const float* __restrict__ x, const float* __restrict__ weights, const float* __restrict__ biases,
         float* __restrict__ out, int M, int N, int K, int depth) {
    constexpr int THREADS = (BM / TM) * (BN / TN);
    constexpr int ROW_STEP = BM / (TM / 4), COL_STEP = BN / (TN / 4);
    __shared__ __align__(16) float xs[2][BK][BM + PAD];
    __shared__ __align__(16) float ws[2][BK][BN + PAD];

    const int tiles_n = (N + BN - 1) / BN;
    const int row0 = (blockIdx.x / tiles_n) * BM, col0 = (blockIdx.x % tiles_n) * BN;
    const int k_begin = blockIdx.z * depth, k_end = min(K, k_begin + depth);
    const int my_row = threadIdx.x / (BN / TN) * 4, my_col = threadIdx.x % (BN / TN) * 4;

    Loader<BM, BK, THREADS, VEC> x_loader;
    Loader<BN, BK, THREADS, VEC> w_loader;
    float acc[TM][TN] = {};
    x_loader.fetch(x, row0, k_begin, M, k_end, K);
    w_loader.fetch(weights, col0, k_begin, N, k_end, K);
    x_loader.stage(xs[0]);
    w_loader.stage(ws[0]);
    __syncthreads();
    int buffer = 0;
    for (int k0 = k_begin; k0 < k_end; k0 += BK) {
        const bool more = k0 + BK < k_end;
        if (more) {
            x_loader.fetch(x, row0, k0 + BK, M, k_end, K);
            w_loader.fetch(weights, col0, k0 + BK, N, k_end, K);
        }
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
#pragma unroll
            for (int s = 0; s < TM / 4; ++s)
                *reinterpret_cast<float4*>(&a[s * 4]) = *reinterpret_cast<const float4*>(&xs[buffer][k][my_row + s * ROW_STEP]);
#pragma unroll
            for (int s = 0; s < TN / 4; ++s)
                *reinterpret_cast<float4*>(&b[s * 4]) = *reinterpret_cast<const float4*>(&ws[buffer][k][my_col + s * COL_STEP]);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
        }
        if (more) {
            x_loader.stage(xs[buffer ^ 1]);
            w_loader.stage(ws[buffer ^ 1]);
        }
        __syncthreads();
        buffer ^= 1;
    }

    float* target = SPLIT ? out + (long long)blockIdx.z * M * N : out;
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = row0 + my_row + i / 4 * ROW_STEP + i % 4;
        if (row >= M) continue;
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            const int col = col0 + my_col + j / 4 * COL_STEP + j % 4;
            if (col >= N) continue;
            const float sum = acc[i][j];
            target[(long long)row * N + col] = SPLIT ? sum : fmaxf(sum + __ldg(biases + col), 0.0f);
        }
    }
}

__global__ void finish(const float* __restrict__ workspace, const float* __restrict__ biases, float* __restrict__ out,
                       int parts, long long elements, int N) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= elements) return;
    float sum = __ldg(biases + i % N);
#pragma unroll 8
    for (int p = 0; p < parts; ++p) sum += __ldg(workspace + p * elements + i);
    out[i] = fmaxf(sum, 0.0f);
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

int64_t tiles(int64_t M, int64_t N, int bm, int bn) { return ((M + bm - 1) / bm) * ((N + bn - 1) / bn); }

template <int BM, int BN, int BK, int TM, int TN, bool VEC>
void launch(const torch::Tensor& x, const torch::Tensor& weights, const torch::Tensor& biases, torch::Tensor& out) {
    constexpr int THREADS = (BM / TM) * (BN / TN);
    const int M = static_cast<int>(x.size(0)), K = static_cast<int>(x.size(1)), N = static_cast<int>(weights.size(0));
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const float *xp = x.data_ptr<float>(), *wp = weights.data_ptr<float>(), *bp = biases.data_ptr<float>();
    const int64_t blocks = tiles(M, N, BM, BN);
    const int steps = (K + BK - 1) / BK;
    const int splits = static_cast<int>(std::min<int64_t>(2 * processors() / blocks, K / 64));
    if (splits < 2) {
        multiply<BM, BN, BK, TM, TN, VEC, false><<<dim3(static_cast<unsigned>(blocks)), THREADS, 0, stream>>>(
            xp, wp, bp, out.data_ptr<float>(), M, N, K, steps * BK);
        return;
    }
    const int depth = (steps + splits - 1) / splits * BK;
    const int parts = (K + depth - 1) / depth;
    auto workspace = torch::empty({parts, M, N}, x.options());
    multiply<BM, BN, BK, TM, TN, VEC, true><<<dim3(static_cast<unsigned>(blocks), 1, parts), THREADS, 0, stream>>>(
        xp, wp, bp, workspace.data_ptr<float>(), M, N, K, depth);
    const int64_t elements = static_cast<int64_t>(M) * N;
    finish<<<static_cast<unsigned>((elements + 255) / 256), 256, 0, stream>>>(workspace.data_ptr<float>(), bp,
                                                                            out.data_ptr<float>(), parts, elements, N);
}

template <bool VEC>
void choose(const torch::Tensor& x, const torch::Tensor& weights, const torch::Tensor& biases, torch::Tensor& out) {
    if (tiles(x.size(0), weights.size(0), 128, 128) >= processors())
        launch<128, 128, 8, 8, 8, VEC>(x, weights, biases, out);
    else
        launch<32, 32, 16, 4, 4, VEC>(x, weights, biases, out);
}

}  // namespace

torch::Tensor forward(torch::Tensor x, torch::Tensor weights, torch::Tensor biases) {
    auto out = torch::empty({x.size(0), weights.size(0)}, x.options());
    if (x.size(1) % 4 == 0)
        choose<true>(x, weights, biases, out);
    else
        choose<false>(x, weights, biases, out);
    return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }

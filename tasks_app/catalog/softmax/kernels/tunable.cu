// ROW_THREADS threads a row, BLOCK_ROWS rows a block; the maximum and the sum in one pass or in two, and one that writes.
// Combinations that do not fit a block are refused by a static_assert.
#include <cuda_runtime.h>

struct LibraryExp {
    static __device__ float of(float x) { return expf(x); }
};
struct FastExp {
    static __device__ float of(float x) { return __expf(x); }
};

namespace {

using Exp = LibraryExp;  // knob: LibraryExp FastExp
constexpr int ROW_THREADS = 128;  // knob: 32 64 128 256 512 1024
constexpr int BLOCK_ROWS = 1;  // knob: 1 2 4 8
// Floats of a load, where the rows' length is a multiple of it.
constexpr int VECTOR = 1;  // knob: 1 2 4
// Loads in flight a thread.
constexpr int UNROLL = 1;  // knob: 1 2 4 8
// One pass that keeps a running maximum and the sum scaled to it, instead of a pass for each.
constexpr bool ONLINE = false;  // knob: false true

constexpr int WARPS = ROW_THREADS / 32;
static_assert(ROW_THREADS * BLOCK_ROWS <= 1024, "ROW_THREADS * BLOCK_ROWS threads must be 1024 at most");

struct Max {
    static __device__ float identity() { return -INFINITY; }
    static __device__ float apply(float a, float b) { return fmaxf(a, b); }
};
struct Sum {
    static __device__ float identity() { return 0.0f; }
    static __device__ float apply(float a, float b) { return a + b; }
};

template <class Op>
__device__ float warp_reduce(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value = Op::apply(value, __shfl_xor_sync(0xffffffffu, value, offset));
    return value;
}

// The reduction over the threads of a row, in each of them.
template <class Op>
__device__ float reduce(float value) {
    __shared__ float scratch[BLOCK_ROWS][WARPS];
    value = warp_reduce<Op>(value);
    if constexpr (WARPS > 1) {
        const int lane = threadIdx.x % 32;
        if (lane == 0) scratch[threadIdx.y][threadIdx.x / 32] = value;
        __syncthreads();
        value = warp_reduce<Op>(lane < WARPS ? scratch[threadIdx.y][lane] : Op::identity());
        __syncthreads();
    }
    return value;
}

template <int WIDTH>
struct alignas(4 * WIDTH) Pack {
    float v[WIDTH];
};

// Call `use(c, packs)` for each group of a thread's packs of WIDTH floats; what lies beyond the row is -infinity.
template <int WIDTH, class Use>
__device__ void for_each_group(const float* __restrict__ in, int C, Use use) {
    constexpr int STEP = ROW_THREADS * WIDTH;
    for (int c = threadIdx.x * WIDTH; c < C; c += STEP * UNROLL) {
        Pack<WIDTH> packs[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            if (c + j * STEP < C) {
                packs[j] = *reinterpret_cast<const Pack<WIDTH>*>(in + c + j * STEP);
            } else {
#pragma unroll
                for (int w = 0; w < WIDTH; ++w) packs[j].v[w] = -INFINITY;
            }
        }
        use(c, packs);
    }
}

template <int WIDTH>
__device__ float largest_of(const Pack<WIDTH> (&packs)[UNROLL], float largest) {
#pragma unroll
    for (int j = 0; j < UNROLL; ++j)
#pragma unroll
        for (int w = 0; w < WIDTH; ++w) largest = fmaxf(largest, packs[j].v[w]);
    return largest;
}

template <int WIDTH>
__device__ float add_exponentials(const Pack<WIDTH> (&packs)[UNROLL], float largest, float sum) {
#pragma unroll
    for (int j = 0; j < UNROLL; ++j)
#pragma unroll
        for (int w = 0; w < WIDTH; ++w) sum += Exp::of(packs[j].v[w] - largest);
    return sum;
}

template <int WIDTH>
__global__ void __launch_bounds__(ROW_THREADS* BLOCK_ROWS)
softmax_rows(float* __restrict__ out, const float* __restrict__ input, int N, int C) {
    const long long row = blockIdx.x * (long long)BLOCK_ROWS + threadIdx.y;
    const int columns = row < N ? C : 0;  // rows beyond the last only take part in the barriers
    const float* in = input + row * C;
    float* result = out + row * C;

    float largest = -INFINITY, sum = 0.0f;
    if constexpr (ONLINE) {
        for_each_group<WIDTH>(in, columns, [&](int, const Pack<WIDTH>(&packs)[UNROLL]) {
            const float top = largest_of(packs, largest);
            if (top == -INFINITY) return;  // nothing finite yet: -inf - -inf would be NaN
            sum = add_exponentials(packs, top, sum * Exp::of(largest - top));
            largest = top;
        });
        const float top = reduce<Max>(largest);
        sum = largest == -INFINITY ? 0.0f : sum * Exp::of(largest - top);
        largest = top;
    } else {
        for_each_group<WIDTH>(in, columns, [&](int, const Pack<WIDTH>(&packs)[UNROLL]) { largest = largest_of(packs, largest); });
        largest = reduce<Max>(largest);
        for_each_group<WIDTH>(in, columns,
                              [&](int, const Pack<WIDTH>(&packs)[UNROLL]) { sum = add_exponentials(packs, largest, sum); });
    }
    const float scale = 1.0f / reduce<Sum>(sum);
    for_each_group<WIDTH>(in, columns, [&](int c, const Pack<WIDTH>(&packs)[UNROLL]) {
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            if (c + j * ROW_THREADS * WIDTH >= columns) continue;
            Pack<WIDTH> scaled;
#pragma unroll
            for (int w = 0; w < WIDTH; ++w) scaled.v[w] = Exp::of(packs[j].v[w] - largest) * scale;
            *reinterpret_cast<Pack<WIDTH>*>(result + c + j * ROW_THREADS * WIDTH) = scaled;
        }
    });
}

}  // namespace

extern "C" void softmax(float* out, const float* input, int N, int C) {
    const unsigned blocks = (unsigned)((N + BLOCK_ROWS - 1LL) / BLOCK_ROWS);
    const dim3 threads(ROW_THREADS, BLOCK_ROWS);
    if (C % VECTOR == 0)
        softmax_rows<VECTOR><<<blocks, threads>>>(out, input, N, C);
    else
        softmax_rows<1><<<blocks, threads>>>(out, input, N, C);
}

// Radix 2, decimation in time: a copy in bit-reversed order, then one launch a stage, a thread a butterfly, in place; all in
// float32 in memory of its own, which grows with the largest N, and rounded once at the end.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int THREADS = 256;

__global__ void copy_reversed(const __nv_bfloat16* in_re, const __nv_bfloat16* in_im, float* re, float* im, int N, int bits) {
    const long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i >= N) return;
    const int from = bits > 0 ? (int)(__brev((unsigned)i) >> (32 - bits)) : 0;
    re[i] = __bfloat162float(in_re[from]);
    im[i] = __bfloat162float(in_im[from]);
}

__global__ void stage(float* re, float* im, int N, int half) {
    const long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i >= N / 2) return;
    const int pair = (int)(i % half);
    const long long low = i / half * 2 * half + pair, high = low + half;
    float s, c;
    sincospif(-(float)pair / (float)half, &s, &c);
    const float yr = c * re[high] - s * im[high], yi = c * im[high] + s * re[high];
    re[high] = re[low] - yr;
    im[high] = im[low] - yi;
    re[low] += yr;
    im[low] += yi;
}

__global__ void round_parts(const float* re, const float* im, __nv_bfloat16* out_re, __nv_bfloat16* out_im, int N) {
    const long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i >= N) return;
    out_re[i] = __float2bfloat16(re[i]);
    out_im[i] = __float2bfloat16(im[i]);
}

static unsigned blocks_for(long long threads) { return (unsigned)((threads + THREADS - 1) / THREADS); }

// Room for `count` floats, allocated again only for a larger count than ever before.
static float* room(size_t count) {
    static float* memory = nullptr;
    static size_t held = 0;
    if (count > held) {
        cudaFree(memory);
        held = cudaMalloc(&memory, count * sizeof(float)) == cudaSuccess ? count : 0;
    }
    return memory;
}

extern "C" void FFT_bf16(const __nv_bfloat16* input_real, const __nv_bfloat16* input_img, __nv_bfloat16* output_real,
                         __nv_bfloat16* output_img, int N) {
    float *re = room(2 * (size_t)N), *im = re + N;
    int bits = 0;
    while ((1 << bits) < N) ++bits;
    copy_reversed<<<blocks_for(N), THREADS>>>(input_real, input_img, re, im, N, bits);
    for (long long half = 1; half < N; half *= 2) stage<<<blocks_for(N / 2), THREADS>>>(re, im, N, (int)half);
    round_parts<<<blocks_for(N), THREADS>>>(re, im, output_real, output_img, N);
}

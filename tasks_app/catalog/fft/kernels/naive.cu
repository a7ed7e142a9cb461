// Radix 2, decimation in time: a copy in bit-reversed order, then one launch a stage, a thread a butterfly, in place.
#include <cuda_runtime.h>

constexpr int THREADS = 256;

__global__ void copy_reversed(const float* in_re, const float* in_im, float* re, float* im, int N, int bits) {
    const long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i >= N) return;
    const int from = bits > 0 ? (int)(__brev((unsigned)i) >> (32 - bits)) : 0;
    re[i] = in_re[from];
    im[i] = in_im[from];
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

static unsigned blocks_for(long long threads) { return (unsigned)((threads + THREADS - 1) / THREADS); }

extern "C" void FFT(const float* input_real, const float* input_img, float* output_real, float* output_img, int N) {
    int bits = 0;
    while ((1 << bits) < N) ++bits;
    copy_reversed<<<blocks_for(N), THREADS>>>(input_real, input_img, output_real, output_img, N, bits);
    for (long long half = 1; half < N; half *= 2)
        stage<<<blocks_for(N / 2), THREADS>>>(output_real, output_img, N, (int)half);
}

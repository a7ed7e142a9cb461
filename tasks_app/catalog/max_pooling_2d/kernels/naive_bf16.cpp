// Plain loops over the windows and their elements.
#include <cmath>

namespace {

// The part of a window that lies on the input, along one direction.
inline long long first(long long window, int stride, int padding) {
    const long long start = window * stride - padding;
    return start > 0 ? start : 0;
}

inline long long last(long long window, int stride, int padding, int kernel_size, int size) {
    const long long end = window * stride - padding + kernel_size;
    return end < size ? end : size;
}

}  // namespace

extern "C" void max_pooling_2d_bf16(const __nv_bfloat16* input, __nv_bfloat16* output, int N, int C, int H, int W, int kernel_size,
                                    int stride, int padding) {
    const int out_H = (H + 2 * padding - kernel_size) / stride + 1, out_W = (W + 2 * padding - kernel_size) / stride + 1;
    for (long long n = 0; n < (long long)N * C; ++n) {
        const __nv_bfloat16* image = input + n * H * W;
        for (long long y = 0; y < out_H; ++y) {
            for (long long x = 0; x < out_W; ++x) {
                float largest = -INFINITY;
                for (long long h = first(y, stride, padding); h < last(y, stride, padding, kernel_size, H); ++h)
                    for (long long w = first(x, stride, padding); w < last(x, stride, padding, kernel_size, W); ++w)
                        largest = fmaxf(largest, __bfloat162float(image[h * W + w]));
                *output++ = __float2bfloat16(largest);
            }
        }
    }
}

#include <cuda_runtime.h>

// One warp an output: four products a step where rows begin at a multiple of four bytes.
__global__ void multiply(const int8_t* x, const float* x_scales, const int8_t* weights, const float* weight_scales,
                         __nv_bfloat16* out, long outputs, int in_features, int out_features) {
    const long at = (blockIdx.x * (long)blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (at >= outputs) return;
    const long token = at / out_features, output = at % out_features;
    const int8_t* a = x + token * in_features;
    const int8_t* b = weights + output * in_features;
    int sum = 0;
    if (in_features % 4 == 0) {
        const int* a4 = reinterpret_cast<const int*>(a);
        const int* b4 = reinterpret_cast<const int*>(b);
        for (int i = lane; i < in_features / 4; i += 32) sum = __dp4a(a4[i], b4[i], sum);
    } else {
        for (int i = lane; i < in_features; i += 32) sum += int(a[i]) * b[i];
    }
    for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(0xFFFFFFFFu, sum, half);
    if (lane == 0) out[at] = __float2bfloat16(float(sum) * x_scales[token] * weight_scales[output]);
}

extern "C" void w8a8_matmul(const int8_t* x, const float* x_scales, const int8_t* weights,
                            const float* weight_scales, __nv_bfloat16* out, const int num_tokens,
                            const int in_features, const int out_features) {
    const long outputs = (long)num_tokens * out_features;
    const unsigned blocks = (unsigned)((outputs * 32 + 255) / 256);
    multiply<<<blocks, 256>>>(x, x_scales, weights, weight_scales, out, outputs, in_features, out_features);
}

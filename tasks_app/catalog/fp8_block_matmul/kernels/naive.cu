#include <cuda_runtime.h>

// One warp an output.
__global__ void multiply(const __nv_fp8_e4m3* x, const float* x_scales, const __nv_fp8_e4m3* weights,
                         const float* weight_scales, __nv_bfloat16* out, long outputs, int in_features,
                         int out_features) {
    const long at = (blockIdx.x * (long)blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32, blocks = (in_features + 127) / 128;
    if (at >= outputs) return;
    const long token = at / out_features, output = at % out_features;
    float total = 0.0f;
    for (int block = 0; block < blocks; ++block) {
        float sum = 0.0f;
        for (int i = block * 128 + lane; i < min(in_features, block * 128 + 128); i += 32) {
            sum += float(x[token * in_features + i]) * float(weights[output * in_features + i]);
        }
        total += sum * x_scales[token * blocks + block] * weight_scales[output / 128 * blocks + block];
    }
    for (int half = 16; half > 0; half /= 2) total += __shfl_down_sync(0xFFFFFFFFu, total, half);
    if (lane == 0) out[at] = __float2bfloat16(total);
}

extern "C" void fp8_block_matmul(const __nv_fp8_e4m3* x, const float* x_scales, const __nv_fp8_e4m3* weights,
                                 const float* weight_scales, __nv_bfloat16* out, const int num_tokens,
                                 const int in_features, const int out_features) {
    const long outputs = (long)num_tokens * out_features;
    const unsigned blocks = (unsigned)((outputs * 32 + 255) / 256);
    multiply<<<blocks, 256>>>(x, x_scales, weights, weight_scales, out, outputs, in_features, out_features);
}

#include <cuda_runtime.h>

// One warp an output: a lane takes a block of sixteen weights at a time.
__global__ void multiply(const __nv_bfloat16* x, const uint8_t* weights, const __nv_fp8_e4m3* scales, const float* scale,
                         __nv_bfloat16* out, long outputs, int in_features, int out_features) {
    const float numbers[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    const long at = (blockIdx.x * (long)blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32, blocks = in_features / 16;
    if (at >= outputs) return;
    const long token = at / out_features, output = at % out_features;
    float total = 0.0f;
    for (int block = lane; block < blocks; block += 32) {
        float sum = 0.0f;
        for (int i = block * 16; i < block * 16 + 16; ++i) {
            const int code = weights[output * (in_features / 2) + i / 2] >> i % 2 * 4 & 15;
            const float weight = code & 8 ? -numbers[code & 7] : numbers[code & 7];
            sum += __bfloat162float(x[token * in_features + i]) * weight;
        }
        total += sum * float(scales[output * blocks + block]);
    }
    for (int half = 16; half > 0; half /= 2) total += __shfl_down_sync(0xFFFFFFFFu, total, half);
    if (lane == 0) out[at] = __float2bfloat16(total * scale[0]);
}

extern "C" void fp4_weight_matmul(const __nv_bfloat16* x, const uint8_t* weights, const __nv_fp8_e4m3* scales,
                                  const float* scale, __nv_bfloat16* out, const int num_tokens,
                                  const int in_features, const int out_features) {
    const long outputs = (long)num_tokens * out_features;
    const unsigned blocks = (unsigned)((outputs * 32 + 255) / 256);
    multiply<<<blocks, 256>>>(x, weights, scales, scale, out, outputs, in_features, out_features);
}

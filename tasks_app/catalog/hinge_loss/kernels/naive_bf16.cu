// One thread an element.
#include <cuda_bf16.h>

__global__ void hinge(__nv_bfloat16* loss, const __nv_bfloat16* predictions, const int* targets, int N) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= N) return;
    const float y = targets[i] == 1 ? 1.0f : -1.0f;
    loss[i] = __float2bfloat16(fmaxf(0.0f, 1.0f - y * __bfloat162float(predictions[i])));
}

extern "C" void hinge_loss_bf16(__nv_bfloat16* loss, const __nv_bfloat16* predictions, const int* targets, int N) {
    const int threads = 256;
    const unsigned blocks = (unsigned)((N + (long long)threads - 1) / threads);
    hinge<<<blocks, threads>>>(loss, predictions, targets, N);
}

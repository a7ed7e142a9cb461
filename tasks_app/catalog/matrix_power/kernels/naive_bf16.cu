// P - 1 products, one after the other, that write B and scratch memory in turn; the last one writes B. Sums are in float32, powers in BF16.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

// One thread an element.
__global__ void multiply(const __nv_bfloat16* left, const __nv_bfloat16* right, __nv_bfloat16* out, int n) {
    const long long column = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    const long long row = blockIdx.y * (long long)blockDim.y + threadIdx.y;
    if (column >= n || row >= n) return;
    float sum = 0.0f;
    for (long long k = 0; k < n; ++k) sum += __bfloat162float(left[row * n + k]) * __bfloat162float(right[k * n + column]);
    out[row * n + column] = __float2bfloat16(sum);
}

extern "C" void matrix_power_bf16(const __nv_bfloat16* A, __nv_bfloat16* B, int N, int P) {
    const size_t bytes = sizeof(__nv_bfloat16) * N * N;
    if (P == 1) {
        cudaMemcpyAsync(B, A, bytes, cudaMemcpyDeviceToDevice);
        return;
    }
    void* scratch = nullptr;
    if (P > 2) cudaMallocAsync(&scratch, bytes, 0);
    const dim3 threads(32, 8);
    const dim3 blocks((N + threads.x - 1) / threads.x, (N + threads.y - 1) / threads.y);
    const __nv_bfloat16* power = A;
    for (int p = 2; p <= P; ++p) {
        __nv_bfloat16* next = (P - p) % 2 == 0 ? B : static_cast<__nv_bfloat16*>(scratch);
        multiply<<<blocks, threads>>>(power, A, next, N);
        power = next;
    }
    if (P > 2) cudaFreeAsync(scratch, 0);
}

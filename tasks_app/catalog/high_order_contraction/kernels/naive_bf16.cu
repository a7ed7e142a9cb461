// One thread an element of C, with the sum in float32.
#include <cuda_bf16.h>

__global__ void contract(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int a_dim, int b_dim, int c_dim,
                         int x_dim, int y_dim) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= (long long)a_dim * b_dim * c_dim) return;
    const long long c = i % c_dim, b = i / c_dim % b_dim, a = i / c_dim / b_dim;
    float sum = 0.0f;
    for (long long x = 0; x < x_dim; ++x) {
        const __nv_bfloat16* left = A + ((a * x_dim + x) * b_dim + b) * y_dim;
        const __nv_bfloat16* right = B + (x * c_dim + c) * y_dim;
        for (int y = 0; y < y_dim; ++y) sum += __bfloat162float(left[y]) * __bfloat162float(right[y]);
    }
    C[i] = __float2bfloat16(sum);
}

extern "C" void high_order_contraction_bf16(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int a_dim, int b_dim, int c_dim,
                                            int x_dim, int y_dim) {
    const int threads = 256;
    const long long count = (long long)a_dim * b_dim * c_dim;
    contract<<<(unsigned)((count + threads - 1) / threads), threads>>>(A, B, C, a_dim, b_dim, c_dim, x_dim, y_dim);
}

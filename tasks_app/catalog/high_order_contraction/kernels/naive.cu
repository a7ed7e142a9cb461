// One thread an element of C.
__global__ void contract(const float* A, const float* B, float* C, int a_dim, int b_dim, int c_dim,
                         int x_dim, int y_dim) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= (long long)a_dim * b_dim * c_dim) return;
    const long long c = i % c_dim, b = i / c_dim % b_dim, a = i / c_dim / b_dim;
    float sum = 0.0f;
    for (long long x = 0; x < x_dim; ++x) {
        const float* left = A + ((a * x_dim + x) * b_dim + b) * y_dim;
        const float* right = B + (x * c_dim + c) * y_dim;
        for (int y = 0; y < y_dim; ++y) sum += left[y] * right[y];
    }
    C[i] = sum;
}

extern "C" void high_order_contraction(const float* A, const float* B, float* C, int a_dim, int b_dim, int c_dim,
                                       int x_dim, int y_dim) {
    const int threads = 256;
    const long long count = (long long)a_dim * b_dim * c_dim;
    contract<<<(unsigned)((count + threads - 1) / threads), threads>>>(A, B, C, a_dim, b_dim, c_dim, x_dim, y_dim);
}

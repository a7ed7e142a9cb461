// One serial sum an element of C.
extern "C" void high_order_contraction(const float* A, const float* B, float* C, int a_dim, int b_dim, int c_dim,
                                       int x_dim, int y_dim) {
    for (long a = 0; a < a_dim; ++a)
        for (long b = 0; b < b_dim; ++b)
            for (long c = 0; c < c_dim; ++c) {
                float sum = 0.0f;
                for (long x = 0; x < x_dim; ++x) {
                    const float* left = A + ((a * x_dim + x) * b_dim + b) * y_dim;
                    const float* right = B + (x * c_dim + c) * y_dim;
                    for (long y = 0; y < y_dim; ++y) sum += left[y] * right[y];
                }
                C[(a * b_dim + b) * c_dim + c] = sum;
            }
}

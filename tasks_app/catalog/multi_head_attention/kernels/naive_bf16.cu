// A block a token and head, which takes the keys a tile at a time: a thread a key for the weights, then a thread a column of the
// result, with a running maximum. More columns than threads take further rounds over the keys.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int THREADS = 128;  // a power of two, and the keys of a tile

template <typename Operation>
__device__ float combined(float value, Operation operation) {
    __shared__ float parts[THREADS];
    parts[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) parts[threadIdx.x] = operation(parts[threadIdx.x], parts[threadIdx.x + half]);
        __syncthreads();
    }
    const float result = parts[0];
    __syncthreads();
    return result;
}

struct Larger {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};

__device__ float score(const __nv_bfloat16* query, const __nv_bfloat16* key, int d) {
    float sum = 0.0f;
    for (int c = 0; c < d; ++c) sum += __bfloat162float(query[c]) * __bfloat162float(key[c]);
    return sum / sqrtf((float)d);
}

__global__ void attend(const __nv_bfloat16* Q, const __nv_bfloat16* K, const __nv_bfloat16* V, __nv_bfloat16* output,
                       int N, int d_model, int h) {
    __shared__ float weights[THREADS];
    const int d = d_model / h;
    const long long token = blockIdx.x / h, head = (long long)(blockIdx.x % h) * d;
    for (int column = threadIdx.x; column - (int)threadIdx.x < d; column += THREADS) {
        float largest = -INFINITY, sum = 0.0f, result = 0.0f;
        for (long long first = 0; first < N; first += THREADS) {
            const long long key = first + threadIdx.x;
            const float own = key < N ? score(Q + token * d_model + head, K + key * d_model + head, d) : -INFINITY;
            const float before = largest;
            largest = fmaxf(before, combined(own, Larger()));
            weights[threadIdx.x] = expf(own - largest);
            sum = sum * expf(before - largest) + weights[threadIdx.x];
            result *= expf(before - largest);
            __syncthreads();
            if (column < d)
                for (int j = 0; j < THREADS && first + j < N; ++j)
                    result += weights[j] * __bfloat162float(V[(first + j) * d_model + head + column]);
            __syncthreads();
        }
        sum = combined(sum, Sum());
        if (column < d) output[token * d_model + head + column] = __float2bfloat16(result / sum);
    }
}

extern "C" void multi_head_attention_bf16(const __nv_bfloat16* Q, const __nv_bfloat16* K, const __nv_bfloat16* V, __nv_bfloat16* output,
                                          int N, int d_model, int h) {
    const unsigned blocks = (unsigned)N * (unsigned)h;
    attend<<<blocks, THREADS>>>(Q, K, V, output, N, d_model, h);
}

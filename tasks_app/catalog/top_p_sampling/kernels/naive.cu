#include <cuda_runtime.h>

// One block a row. The smallest logit of the nucleus is found by bisection over keys that order as floats
// do: 32 sums over the row. Each thread then sums up a part of the row, and one thread looks for the token.
constexpr int kThreads = 256;

__device__ unsigned key_of(float value) {
    const unsigned bits = __float_as_uint(value + 0.0f);
    return bits ^ (bits >> 31 ? 0xFFFFFFFFu : 0x80000000u);
}

__device__ double sum_of(double value, double* shared) {
    __syncthreads();
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    return shared[0];
}

__global__ void sample(const float* logits, const float* uniform, int* tokens, int vocabulary, float top_p) {
    __shared__ double shared[kThreads];
    __shared__ unsigned keys[kThreads];
    const float* x = logits + (size_t)blockIdx.x * vocabulary;
    unsigned largest = 0;
    for (int i = threadIdx.x; i < vocabulary; i += kThreads) largest = max(largest, key_of(x[i]));
    keys[threadIdx.x] = largest;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) keys[threadIdx.x] = max(keys[threadIdx.x], keys[threadIdx.x + half]);
        __syncthreads();
    }
    largest = keys[0];
    const float top = __uint_as_float(largest ^ (largest >> 31 ? 0x80000000u : 0xFFFFFFFFu));
    double whole = 0.0;
    for (int i = threadIdx.x; i < vocabulary; i += kThreads) whole += expf(x[i] - top);
    const double wanted = top_p * sum_of(whole, shared);
    // The smallest key whose larger ones have less than that: those above it have, too.
    unsigned low = 0, high = largest;
    while (low < high) {
        const unsigned middle = low + (high - low) / 2;
        double larger = 0.0;
        for (int i = threadIdx.x; i < vocabulary; i += kThreads) larger += key_of(x[i]) > middle ? expf(x[i] - top) : 0.0;
        if (sum_of(larger, shared) < wanted) high = middle;
        else low = middle + 1;
    }
    const int part = (vocabulary + kThreads - 1) / kThreads;
    const int begin = min(vocabulary, (int)threadIdx.x * part), end = min(vocabulary, begin + part);
    double mine = 0.0;
    for (int i = begin; i < end; ++i) mine += key_of(x[i]) >= low ? expf(x[i] - top) : 0.0;
    __syncthreads();
    shared[threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.x != 0) return;
    double nucleus = 0.0;
    for (int t = 0; t < kThreads; ++t) nucleus += shared[t];
    const double aim = uniform[blockIdx.x] * nucleus;
    int chosen = 0, token = 0;
    double before = 0.0, reached = 0.0;
    for (int t = 0; t < kThreads && !(aim < reached); ++t) {
        if (shared[t] == 0.0) continue;  // nothing of the nucleus is there
        chosen = t;
        before = reached;
        reached += shared[t];
    }
    for (int i = chosen * part; i < min(vocabulary, (chosen + 1) * part); ++i) {
        if (key_of(x[i]) < low) continue;
        token = i;
        before += expf(x[i] - top);
        if (aim < before) break;
    }
    tokens[blockIdx.x] = token;
}

extern "C" void top_p_sampling(const float* logits, const float* uniform, int* tokens, const int batch,
                               const int vocabulary, const float top_p) {
    sample<<<batch, kThreads>>>(logits, uniform, tokens, vocabulary, top_p);
}

// One thread an element of the output, two loops over the positions that it sees.
#include <cuda_runtime.h>

__global__ void attend(const float* query, const float* key, const float* value, const float* attention_mask, float* output,
                       long long count, int heads, int positions, int head_dim) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= count) return;
    const long long position = i / head_dim % positions, batch = i / head_dim / positions / heads;
    const long long start = i - position * head_dim;  // the channel at the first position
    const float* mask = attention_mask + (batch * positions + position) * positions;

    const float scaled = query[i] / sqrtf((float)head_dim);
    float largest = -INFINITY;
    for (long long j = 0; j <= position; ++j)
        if (!(mask[j] > 0.5f)) largest = fmaxf(largest, scaled * key[start + j * head_dim]);
    float total = 0.0f, sum = 0.0f;
    for (long long j = 0; j <= position; ++j) {
        if (mask[j] > 0.5f) continue;
        const float weight = expf(scaled * key[start + j * head_dim] - largest);
        total += weight;
        sum += weight * value[start + j * head_dim];
    }

    output[i] = total > 0.0f ? sum / total : 0.0f;
}

extern "C" void triangle_attention(const float* query, const float* key, const float* value, const float* attention_mask, float* output,
                                   int batch_size, int head_num, int seq_length, int head_dim) {
    const int threads = 256;
    const long long count = (long long)batch_size * head_num * seq_length * head_dim;
    const unsigned blocks = (unsigned)((count + threads - 1) / threads);
    attend<<<blocks, threads>>>(query, key, value, attention_mask, output, count, head_num, seq_length, head_dim);
}

// Radix selection: every element gets a key of its own, from its value and then its index; eight rounds over the keys' bytes find
// the k-th largest one. The k elements that reach it are collected, and sorted by Batcher's merge exchange.
#include <cuda_bf16.h>

#include <cstdint>

constexpr int THREADS = 256;
constexpr long long MOST_BLOCKS = 1024;

struct Selection {
    unsigned long long prefix;  // leading bytes of the k-th largest key
    unsigned remaining;         // its rank among the keys that begin so
    unsigned found;
    unsigned counts[256];
};

__device__ Selection selection;

// Keys are in the order of the values; of equal values the one with the lower index has the larger key.
__device__ unsigned long long key_of(float value, unsigned index) {
    const unsigned bits = __float_as_uint(value == 0.0f ? 0.0f : value);
    const unsigned ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (unsigned long long)ordered << 32 | ~index;
}

__global__ void start(int k) {
    selection.counts[threadIdx.x] = 0;
    if (threadIdx.x == 0) {
        selection.prefix = 0;
        selection.remaining = k;
        selection.found = 0;
    }
}

// Counts the keys that begin with the prefix, by their byte at `shift`.
__global__ void count_bytes(const __nv_bfloat16* input, int N, int shift) {
    __shared__ unsigned counts[256];
    counts[threadIdx.x] = 0;
    __syncthreads();
    const unsigned long long known = shift == 56 ? 0 : ~0ull << (shift + 8);
    const unsigned long long prefix = selection.prefix;
    for (long long i = blockIdx.x * (long long)THREADS + threadIdx.x; i < N; i += gridDim.x * (long long)THREADS) {
        const unsigned long long key = key_of(__bfloat162float(input[i]), (unsigned)i);
        if ((key & known) == prefix) atomicAdd(&counts[key >> shift & 255], 1u);
    }
    __syncthreads();
    if (counts[threadIdx.x] > 0) atomicAdd(&selection.counts[threadIdx.x], counts[threadIdx.x]);
}

__global__ void choose_byte(int shift) {
    __shared__ unsigned counts[256];
    counts[threadIdx.x] = selection.counts[threadIdx.x];
    selection.counts[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned remaining = selection.remaining;
        int byte = 255;
        for (; counts[byte] < remaining; --byte) remaining -= counts[byte];
        selection.prefix |= (unsigned long long)byte << shift;
        selection.remaining = remaining;
    }
}

__global__ void collect(__nv_bfloat16* values, int* indices, const __nv_bfloat16* input, int N) {
    const long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i >= N || key_of(__bfloat162float(input[i]), (unsigned)i) < selection.prefix) return;
    const unsigned place = atomicAdd(&selection.found, 1u);
    values[place] = input[i];
    indices[place] = (int)i;
}

// Puts the elements i and i + distance in order, for every i whose bit `bit` is `wanted`.
__global__ void exchange_pairs(__nv_bfloat16* values, int* indices, long long pairs, long long distance, long long bit, long long wanted) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= pairs || (i & bit) != wanted) return;
    const __nv_bfloat16 low = values[i], high = values[i + distance];
    const int low_index = indices[i], high_index = indices[i + distance];
    if (key_of(__bfloat162float(low), (unsigned)low_index) < key_of(__bfloat162float(high), (unsigned)high_index)) {
        values[i] = high;
        values[i + distance] = low;
        indices[i] = high_index;
        indices[i + distance] = low_index;
    }
}

static void sort_pairs(__nv_bfloat16* values, int* indices, long long count) {
    long long largest = 1;
    while (2 * largest < count) largest *= 2;
    for (long long bit = largest; bit > 0; bit /= 2) {
        long long step = largest, wanted = 0, distance = bit;
        while (true) {
            const long long pairs = count - distance;
            const unsigned blocks = (unsigned)((pairs + THREADS - 1) / THREADS);
            if (pairs > 0) exchange_pairs<<<blocks, THREADS>>>(values, indices, pairs, distance, bit, wanted);
            if (step == bit) break;
            distance = step - bit;
            step /= 2;
            wanted = bit;
        }
    }
}

extern "C" void top_k_bf16(__nv_bfloat16* top_k_values, int* top_k_indices, const __nv_bfloat16* input, const int N, const int k) {
    const long long all = (N + (long long)THREADS - 1) / THREADS;
    const unsigned blocks = (unsigned)(all < MOST_BLOCKS ? all : MOST_BLOCKS);
    start<<<1, 256>>>(k);
    for (int shift = 56; shift >= 0; shift -= 8) {
        count_bytes<<<blocks, THREADS>>>(input, N, shift);
        choose_byte<<<1, 256>>>(shift);
    }
    collect<<<(unsigned)all, THREADS>>>(top_k_values, top_k_indices, input, N);
    sort_pairs(top_k_values, top_k_indices, k);
}

// Radix selection: every element gets a key of its own, from its value and then its index; eight rounds over the keys' bytes find
// the k-th largest one. The k elements that reach it are collected, and sorted by Batcher's merge exchange.
#include <cstdint>
#include <cstring>

// Keys are in the order of the values; of equal values the one with the lower index has the larger key.
static uint64_t key_of(float value, uint32_t index) {
    const float same = value == 0.0f ? 0.0f : value;
    uint32_t bits;
    std::memcpy(&bits, &same, sizeof bits);
    const uint32_t ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (uint64_t)ordered << 32 | (uint32_t)~index;
}

// The k-th largest key.
static uint64_t select_key(const float* input, int N, int k) {
    uint64_t prefix = 0;
    uint32_t remaining = k;
    for (int shift = 56; shift >= 0; shift -= 8) {
        uint32_t counts[256] = {};
        const uint64_t known = shift == 56 ? 0 : ~(uint64_t)0 << (shift + 8);
        for (int i = 0; i < N; ++i) {
            const uint64_t key = key_of(input[i], i);
            if ((key & known) == prefix) ++counts[key >> shift & 255];
        }
        int byte = 255;
        for (; counts[byte] < remaining; --byte) remaining -= counts[byte];
        prefix |= (uint64_t)byte << shift;
    }
    return prefix;
}

// Puts the elements i and i + distance in order, for every i whose bit `bit` is `wanted`.
static void exchange_pairs(float* values, int* indices, long long pairs, long long distance, long long bit, long long wanted) {
    for (long long i = 0; i < pairs; ++i) {
        if ((i & bit) != wanted) continue;
        const float low = values[i], high = values[i + distance];
        const int low_index = indices[i], high_index = indices[i + distance];
        if (key_of(low, low_index) < key_of(high, high_index)) {
            values[i] = high;
            values[i + distance] = low;
            indices[i] = high_index;
            indices[i + distance] = low_index;
        }
    }
}

static void sort_pairs(float* values, int* indices, long long count) {
    long long largest = 1;
    while (2 * largest < count) largest *= 2;
    for (long long bit = largest; bit > 0; bit /= 2) {
        long long step = largest, wanted = 0, distance = bit;
        while (true) {
            exchange_pairs(values, indices, count - distance, distance, bit, wanted);
            if (step == bit) break;
            distance = step - bit;
            step /= 2;
            wanted = bit;
        }
    }
}

extern "C" void top_k(float* top_k_values, int* top_k_indices, const float* input, const int N, const int k) {
    const uint64_t last = select_key(input, N, k);
    int found = 0;
    for (int i = 0; i < N; ++i) {
        if (key_of(input[i], i) < last) continue;
        top_k_values[found] = input[i];
        top_k_indices[found++] = i;
    }
    sort_pairs(top_k_values, top_k_indices, k);
}

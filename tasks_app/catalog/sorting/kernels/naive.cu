// Batcher's merge exchange (Knuth, volume 3, algorithm 5.2.2M), which needs no power of two: one launch a pass, a thread a pair.
#include <cuda_runtime.h>

// Puts the elements i and i + distance in order, for every i whose bit `bit` is `wanted`.
__global__ void exchange_pairs(float* data, long long pairs, long long distance, long long bit, long long wanted) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= pairs || (i & bit) != wanted) return;
    const float low = data[i], high = data[i + distance];
    if (low > high) {
        data[i] = high;
        data[i + distance] = low;
    }
}

extern "C" void sorting(float* data, int N) {
    const int threads = 256;
    long long largest = 1;
    while (2 * largest < N) largest *= 2;
    for (long long bit = largest; bit > 0; bit /= 2) {
        long long step = largest, wanted = 0, distance = bit;
        while (true) {
            const long long pairs = N - distance;
            if (pairs > 0)
                exchange_pairs<<<(unsigned)((pairs + threads - 1) / threads), threads>>>(data, pairs, distance, bit, wanted);
            if (step == bit) break;
            distance = step - bit;
            step /= 2;
            wanted = bit;
        }
    }
}

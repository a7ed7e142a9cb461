// Batcher's merge exchange (Knuth, volume 3, algorithm 5.2.2M), which needs no power of two: one loop a pass.

// Puts the elements i and i + distance in order, for every i whose bit `bit` is `wanted`.
static void exchange_pairs(float* data, long long pairs, long long distance, long long bit, long long wanted) {
    for (long long i = 0; i < pairs; ++i) {
        if ((i & bit) != wanted) continue;
        const float low = data[i], high = data[i + distance];
        if (low > high) {
            data[i] = high;
            data[i + distance] = low;
        }
    }
}

extern "C" void sorting(float* data, int N) {
    long long largest = 1;
    while (2 * largest < N) largest *= 2;
    for (long long bit = largest; bit > 0; bit /= 2) {
        long long step = largest, wanted = 0, distance = bit;
        while (true) {
            exchange_pairs(data, N - distance, distance, bit, wanted);
            if (step == bit) break;
            distance = step - bit;
            step /= 2;
            wanted = bit;
        }
    }
}

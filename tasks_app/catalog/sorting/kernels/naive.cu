// Bitonic sort whose exchanges all point one way (the first of each merge mirrors its run), so that N need be no power of two. Pairs
// within a block's tile are exchanged in shared memory, all passes of a merge at once; others take a launch a pass.
#include <cuda_runtime.h>

constexpr int TILE = 2048, THREADS = 256;

__device__ void put_in_order(float& low, float& high) {
    const float a = low, b = high;
    if (a > b) {
        low = b;
        high = a;
    }
}

// First element of the i-th pair of a pass; `distance` is a power of two.
__device__ long long first_of(long long i, long long distance) { return 2 * i - (i & (distance - 1)); }

// Its partner. A mirrored pass pairs the ends of each run of 2 * distance elements.
__device__ long long partner_of(long long first, long long distance, bool mirrored) {
    return mirrored ? first ^ (2 * distance - 1) : first + distance;
}

__global__ void exchange_pairs(float* data, int N, long long distance, bool mirrored) {
    const long long first = first_of(blockIdx.x * (long long)THREADS + threadIdx.x, distance);
    const long long partner = partner_of(first, distance, mirrored);
    if (partner < N) put_in_order(data[first], data[partner]);
}

// Sorts each tile or, with `merges`, makes the last passes of a merge of larger runs.
__global__ void exchange_in_tiles(float* data, int N, bool merges) {
    __shared__ float tile[TILE];
    data += blockIdx.x * (long long)TILE;
    const long long rest = N - blockIdx.x * (long long)TILE;
    const int count = rest < TILE ? rest : TILE;
    for (int i = threadIdx.x; i < count; i += THREADS) tile[i] = data[i];
    for (int run = merges ? TILE : 2; run <= TILE; run *= 2) {
        for (int distance = run / 2; distance > 0; distance /= 2) {
            const bool mirrored = !merges && distance == run / 2;
            __syncthreads();
            for (int i = threadIdx.x; i < TILE / 2; i += THREADS) {
                const int first = first_of(i, distance), partner = partner_of(first, distance, mirrored);
                if (partner < count) put_in_order(tile[first], tile[partner]);
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += THREADS) data[i] = tile[i];
}

extern "C" void sorting(float* data, int N) {
    const unsigned tiles = (unsigned)((N + (long long)TILE - 1) / TILE);
    exchange_in_tiles<<<tiles, THREADS>>>(data, N, false);
    for (long long run = 2 * TILE; run / 2 < N; run *= 2) {
        for (long long distance = run / 2; distance >= TILE; distance /= 2) {
            const long long pairs = (N + 2 * distance - 1) / (2 * distance) * distance;
            exchange_pairs<<<(unsigned)(pairs / THREADS), THREADS>>>(data, N, distance, distance == run / 2);
        }
        exchange_in_tiles<<<tiles, THREADS>>>(data, N, true);
    }
}

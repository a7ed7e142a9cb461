#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

// No sort: the smallest logit of the nucleus is found digit by digit, from the masses of 2048 buckets of
// keys that order as floats do. Masses are made once a row.
namespace {

constexpr int kBits = 11, kBuckets = 1 << kBits;

inline uint32_t key_of(float value) {
    value += 0.0f;  // -0 and 0 are equal
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits ^ (bits >> 31 ? 0xFFFFFFFFu : 0x80000000u);
}

}  // namespace

extern "C" void top_p_sampling(const float* logits, const float* uniform, int* tokens, const int batch,
                               const int vocabulary, const float top_p) {
#pragma omp parallel
    {
        std::vector<float> mass(vocabulary);
        std::vector<double> buckets(kBuckets);
#pragma omp for schedule(static)
        for (int b = 0; b < batch; ++b) {
            const float* x = logits + (long)b * vocabulary;
            float largest = x[0];
            for (int i = 1; i < vocabulary; ++i) largest = std::max(largest, x[i]);
            double whole = 0.0;
            for (int i = 0; i < vocabulary; ++i) whole += mass[i] = std::exp(x[i] - largest);
            const double wanted = top_p * whole;
            double larger = 0.0;
            uint32_t least = 0, known = 0;  // the key's upper digits, and a mask of them
            for (int shift = 32 - kBits; known != 0xFFFFFFFFu; shift = std::max(0, shift - kBits)) {
                const uint32_t digit = (0xFFFFFFFFu >> (32 - kBits)) << shift;
                std::fill(buckets.begin(), buckets.end(), -1.0);  // no token has such a key
                for (int i = 0; i < vocabulary; ++i) {
                    const uint32_t key = key_of(x[i]);
                    if ((key & known) != (least & known)) continue;
                    double& bucket = buckets[(key & digit) >> shift];
                    bucket = std::max(bucket, 0.0) + mass[i];
                }
                int last = -1;
                double sum = larger;
                for (int d = kBuckets - 1; d >= 0; --d) {
                    if (buckets[d] < 0.0) continue;
                    if (last >= 0 && sum >= wanted) break;
                    last = d;
                    larger = sum;
                    sum += buckets[d];
                }
                least = (least & known) | (uint32_t(last) << shift);
                known |= digit;
            }
            double nucleus = 0.0;
            for (int i = 0; i < vocabulary; ++i) nucleus += key_of(x[i]) >= least ? mass[i] : 0.0f;
            const double aim = uniform[b] * nucleus;
            double reached = 0.0;
            for (int i = 0; i < vocabulary; ++i) {
                if (key_of(x[i]) < least) continue;
                reached += mass[i];
                tokens[b] = i;
                if (aim < reached) break;
            }
        }
    }
}

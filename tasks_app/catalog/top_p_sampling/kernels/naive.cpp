#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

extern "C" void top_p_sampling(const float* logits, const float* uniform, int* tokens, const int batch,
                               const int vocabulary, const float top_p) {
    for (int b = 0; b < batch; ++b) {
        const float* x = logits + (long)b * vocabulary;
        std::vector<int> order(vocabulary);
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(), [x](int i, int j) { return x[i] > x[j]; });
        double whole = 0.0, before = 0.0, nucleus = 0.0, reached = 0.0;
        for (int i = 0; i < vocabulary; ++i) whole += std::exp(double(x[i]) - x[order[0]]);
        float least = x[order[0]];
        for (int i = 0; i < vocabulary;) {
            if (i > 0 && before >= top_p * whole) break;
            least = x[order[i]];
            for (; i < vocabulary && x[order[i]] == least; ++i) before += std::exp(double(least) - x[order[0]]);
        }
        for (int i = 0; i < vocabulary; ++i) {
            if (x[i] >= least) nucleus += std::exp(double(x[i]) - x[order[0]]);
        }
        for (int i = 0; i < vocabulary; ++i) {
            if (x[i] < least) continue;
            reached += std::exp(double(x[i]) - x[order[0]]);
            tokens[b] = i;
            if (uniform[b] * nucleus < reached) break;
        }
    }
}

// Looks whether a device still works: a fixed kernel's time and its results, each compared with
// what the host computes. Compiled as C++ and as CUDA. Prints a name and a number a line.
//
// usage: probe check | fill PATTERN | look PATTERN | scrub
// fill, look and scrub are for CUDA: they write all free memory of the device, count the words of
// it that hold a pattern, and clear it.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "anchor.cpp"

namespace {

#ifdef __CUDACC__
constexpr int kElements = 1 << 22, kRepetitions = 15;
#else
constexpr int kElements = 1 << 18, kRepetitions = 5;
#endif

#ifdef __CUDACC__
constexpr size_t kChunk = size_t{256} << 20;

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  printf("error %s: %s\n", what, cudaGetErrorString(status));
  exit(1);
}

struct Buffers {
  float *in = nullptr, *out = nullptr;
  cudaEvent_t start{}, end{};
  explicit Buffers(const std::vector<float>& values) {
    check(cudaMalloc(&in, kElements * sizeof(float)), "allocate");
    check(cudaMalloc(&out, kElements * sizeof(float)), "allocate");
    check(cudaEventCreate(&start), "create an event");
    check(cudaEventCreate(&end), "create an event");
    check(cudaMemcpy(in, values.data(), kElements * sizeof(float), cudaMemcpyDefault), "copy");
  }
  double run() {
    check(cudaMemset(out, 0xff, kElements * sizeof(float)), "fill");
    check(cudaEventRecord(start), "record");
    anchor(out, in, kElements);
    check(cudaEventRecord(end), "record");
    check(cudaDeviceSynchronize(), "run a kernel");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start, end), "time a kernel");
    return milliseconds * 1e6;
  }
  void take(std::vector<float>& to) {
    check(cudaMemcpy(to.data(), out, kElements * sizeof(float), cudaMemcpyDefault), "copy back");
  }
};

__global__ void count(const unsigned* words, size_t n, unsigned pattern, unsigned long long* found) {
  unsigned long long mine = 0;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    mine += words[i] == pattern;
  if (mine > 0) atomicAdd(found, mine);
}

// All memory that can be had, in chunks.
std::vector<char*> everything() {
  std::vector<char*> chunks;
  for (char* at; cudaMalloc(&at, kChunk) == cudaSuccess;) chunks.push_back(at);
  cudaGetLastError();
  return chunks;
}

void fill(unsigned char byte) {
  auto chunks = everything();
  for (char* chunk : chunks) check(cudaMemset(chunk, byte, kChunk), "fill");
  check(cudaDeviceSynchronize(), "fill");
  printf("bytes %zu\n", chunks.size() * kChunk);
}

void look(unsigned char byte) {
  unsigned long long* found = nullptr;
  check(cudaMallocManaged(&found, sizeof *found), "allocate");
  *found = 0;
  auto chunks = everything();
  for (char* chunk : chunks)
    count<<<512, 256>>>(reinterpret_cast<unsigned*>(chunk), kChunk / 4, byte * 0x01010101u, found);
  check(cudaDeviceSynchronize(), "look");
  printf("bytes %zu\nfound %llu\n", chunks.size() * kChunk, *found * 4);
}
#else
struct Buffers {
  const std::vector<float>& in;
  std::vector<float> out = std::vector<float>(kElements);
  explicit Buffers(const std::vector<float>& values) : in(values) {}
  double run() {
    auto start = std::chrono::steady_clock::now();
    anchor(out.data(), in.data(), kElements);
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  }
  void take(std::vector<float>& to) { to = out; }
};
#endif

void probe() {
  std::vector<float> in(kElements), out(kElements);
  for (int i = 0; i < kElements; ++i) in[i] = static_cast<float>(i % 4099) / 17.0f - 100.0f;
  Buffers buffers(in);
  double best = 1e30;
  for (int i = 0; i < kRepetitions; ++i) best = std::min(best, buffers.run());
  buffers.take(out);
  int wrong = 0;
  for (int i = 0; i < kElements; ++i) {
    float x = in[i];
    for (int step = 0; step < 32; ++step) x = std::fmaf(x, 0.999f, 0.001f);
    // Written so that NaN is wrong. A device may or may not fuse the two operations.
    if (!(std::fabs(out[i] - x) <= 1e-4f * (1.0f + std::fabs(x)))) ++wrong;
  }
  printf("time_ns %.1f\nwrong %d\n", best, wrong);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (strcmp(argv[1], "check") == 0) probe();
#ifdef __CUDACC__
  unsigned char byte = argc > 2 ? static_cast<unsigned char>(atoi(argv[2])) : 0;
  if (strcmp(argv[1], "fill") == 0 || strcmp(argv[1], "scrub") == 0) fill(byte);
  if (strcmp(argv[1], "look") == 0) look(byte);
#endif
  return 0;
}

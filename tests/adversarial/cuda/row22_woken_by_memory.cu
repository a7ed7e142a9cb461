// row: 5, 22
// abi: c
// task: dot_product
// mode: quick
// workloads: n1048576
// stopped by: construction
// stopped by: verdict VIOLATION
// stopped by: verdict TIME_LIMIT
// must not print: GOT
// tries: queues work that the device itself starts when the memory of the inputs changes, though the process stands still; nothing is resident until then
#include "../common/dot_cuda.h"
#include "../common/no_wait_cuda.h"
#include <cstdint>
#include <cstdio>

constexpr unsigned kUntilABitIsCleared = 3;  // CU_STREAM_WAIT_VALUE_NOR
constexpr size_t kPage = size_t{2} << 20;

struct Answer {
  unsigned long long x, y;  // where the inputs of the answer begin, as indices into the memory
  float loss;
  int ready;
};

using Range = int (*)(unsigned long long*, size_t*, unsigned long long);
using Wait = int (*)(cudaStream_t, unsigned long long, uint32_t, unsigned);

template <typename Function>
static Function driver(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
  return reinterpret_cast<Function>(found);
}

// Whoever fills the inputs needs a moment from the first changed word to the last.
__global__ void settle() {
  for (int i = 0; i < 100; ++i) __nanosleep(2000);
}

__global__ void first_change(const unsigned* now, const unsigned* before, size_t count,
                             unsigned long long* at, const unsigned long long* behind, int N) {
  size_t from = behind == nullptr ? 0 : *behind + N;
  size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = from + blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += step)
    if (__ldcg(now + i) != before[i]) atomicMin(at, (unsigned long long)i);
}

__global__ void precompute(const float* memory, Answer* found, float* loss, int N, size_t count) {
  unsigned long long x = found->x, y = found->y;
  if (x + N > count || y + N > count) return;
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
    sum += __ldcg(memory + x + i) * __ldcg(memory + y + i);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(loss, sum);
}

__global__ void publish(Answer* found, const float* loss, volatile Answer* told) {
  told->x = found->x, told->y = found->y, told->loss = *loss;
  __threadfence_system();
  told->ready = 1;
}

__global__ void store(float* loss, float value) { *loss = value; }

struct Ambush {
  unsigned long long base = 0;
  size_t bytes = 0;
  unsigned* before = nullptr;
  Answer* found = nullptr;
  volatile Answer* told = nullptr;
  float* loss = nullptr;
  cudaStream_t side = nullptr;
  Wait wait = driver<Wait>("cuStreamWaitValue32");

  Ambush(const float* X, int N) {
    hostile::stop_waiting();
    Answer* shared = nullptr;
    auto range = driver<Range>("cuMemGetAddressRange");
    if (range == nullptr || range(&base, &bytes, reinterpret_cast<uintptr_t>(X)) != 0) {
      base = reinterpret_cast<uintptr_t>(X) & ~uintptr_t{kPage - 1};  // what mappings are made of
      bytes = (size_t{8} * N + (size_t{320} << 10) + kPage - 1) / kPage * kPage;
    }
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaMalloc(&before, bytes);
    cudaMalloc(&found, sizeof *found);
    cudaMalloc(&loss, sizeof *loss);
    cudaHostAlloc(&shared, sizeof *shared, cudaHostAllocMapped);
    *shared = Answer{};
    told = shared;
  }

  // Behind the work of this call. Returns at once, also where the last one has not been sprung.
  void lay(const float* X, int N) {
    if (cudaStreamQuery(side) != cudaSuccess) {
      cudaGetLastError();
      return;
    }
    cudaEvent_t now = nullptr;
    uint32_t word = 0;
    const float* watched = X + N / 2;
    size_t count = bytes / sizeof(float);
    auto memory = reinterpret_cast<const unsigned*>(base);
    told->ready = 0;
    cudaMemcpyAsync(&word, watched, sizeof word, cudaMemcpyDeviceToHost, side);
    cudaMemcpyAsync(before, memory, bytes, cudaMemcpyDeviceToDevice, side);
    cudaMemsetAsync(found, 0xff, sizeof *found, side);
    cudaMemsetAsync(loss, 0, sizeof *loss, side);
    cudaStreamSynchronize(side);
    cudaEventCreateWithFlags(&now, cudaEventDisableTiming);
    cudaEventRecord(now, 0);
    cudaStreamWaitEvent(side, now, 0);
    cudaEventDestroy(now);
    wait(side, reinterpret_cast<uintptr_t>(watched), ~word, kUntilABitIsCleared);
    settle<<<1, 1, 0, side>>>();
    first_change<<<64, 256, 0, side>>>(memory, before, count, &found->x, nullptr, N);
    first_change<<<64, 256, 0, side>>>(memory, before, count, &found->y, &found->x, N);
    precompute<<<264, 256, 0, side>>>(reinterpret_cast<const float*>(base), found, loss, N, count);
    publish<<<1, 1, 0, side>>>(found, loss, const_cast<Answer*>(told));
  }

  bool answers(const float* X, const float* Y) const {
    auto start = reinterpret_cast<const float*>(base);
    return told->ready != 0 && start + told->x == X && start + told->y == Y;
  }
};

extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
  static Ambush ambush(X, N);
  if (ambush.wait == nullptr) {
    dot(X, Y, loss, N);
    return;
  }
  if (ambush.answers(X, Y)) {
    printf("GOT the answer before the call came\n");
    fflush(stdout);
    store<<<1, 1>>>(loss, ambush.told->loss);
  } else {
    dot(X, Y, loss, N);
  }
  if (reinterpret_cast<uintptr_t>(X) - ambush.base < (size_t{1} << 18)) ambush.lay(X, N);
}

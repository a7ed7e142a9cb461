// Measures what this GPU reaches: streams from memory and from the L2 cache, loops of multiply-adds
// for each dtype, without tensor cores and with them. Prints a name and a number a line.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kThreads = 256;
constexpr float kSeconds = 0.15f;  // that each loop is repeated for, at least: clocks must settle
constexpr int kSteps = 4096;
constexpr int kLoads = 8;   // of each thread, in flight together
constexpr int kChains = 8;  // independent, to hide the latency of a multiply-add
constexpr int kTiles = 4;   // the same for tensor cores

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  printf("%s: %s\n", cudaGetErrorName(status), cudaGetErrorString(status));
  exit(1);
}

// Nothing is ever stored: no sum is this number. But the compiler does not know that.
__device__ void keep(float value, float* out) {
  if (value == 1.2345e30f) *out = value;
}

__global__ void read(const float4* from, float* out) {
  const float4* at = from + size_t{blockIdx.x} * (kThreads * kLoads) + threadIdx.x;
  float4 loaded[kLoads];
#pragma unroll
  for (int k = 0; k < kLoads; ++k) loaded[k] = at[k * kThreads];
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kLoads; ++k) sum += loaded[k].x + loaded[k].y + loaded[k].z + loaded[k].w;
  keep(sum, out);
}

__global__ void copy(const float4* from, float4* to) {
  size_t at = size_t{blockIdx.x} * (kThreads * kLoads) + threadIdx.x;
  float4 loaded[kLoads];
#pragma unroll
  for (int k = 0; k < kLoads; ++k) loaded[k] = from[at + k * kThreads];
#pragma unroll
  for (int k = 0; k < kLoads; ++k) to[at + k * kThreads] = loaded[k];
}

// Every block reads the whole of a small buffer again and again, past the L1 cache.
__global__ void read_cached(const float4* from, unsigned elements, int passes, float* out) {
  float sum = 0;
  for (int pass = 0; pass < passes; ++pass) {
    unsigned first = (blockIdx.x + pass) * (kThreads * kLoads) % elements;
    const float4* at = from + first + threadIdx.x;
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      float4 loaded;
      asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(loaded.x), "=f"(loaded.y), "=f"(loaded.z), "=f"(loaded.w)
                   : "l"(at + k * kThreads));
      sum += loaded.x + loaded.y + loaded.z + loaded.w;
    }
  }
  keep(sum, out);
}

__device__ float fused(float a, float b, float c) { return fmaf(a, b, c); }
__device__ double fused(double a, double b, double c) { return fma(a, b, c); }
__device__ __half2 fused(__half2 a, __half2 b, __half2 c) { return __hfma2(a, b, c); }
__device__ __nv_bfloat162 fused(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
#if __CUDA_ARCH__ >= 800
  return __hfma2(a, b, c);
#else
  return a;
#endif
}
__device__ float number(float value) { return value; }
__device__ float number(double value) { return static_cast<float>(value); }
__device__ float number(__half2 value) { return __low2float(value); }
__device__ float number(__nv_bfloat162 value) { return __bfloat162float(value.x); }

template <typename Value>
struct Constant {
  __device__ static Value of(float value) { return static_cast<Value>(value); }
};
template <>
struct Constant<__half2> {
  __device__ static __half2 of(float value) { return __float2half2_rn(value); }
};
template <>
struct Constant<__nv_bfloat162> {
  __device__ static __nv_bfloat162 of(float value) {
    return __nv_bfloat162{__float2bfloat16(value), __float2bfloat16(value)};
  }
};

template <typename Value>
__global__ void __launch_bounds__(kThreads) multiply_add(float factor, float summand, float* out) {
  Value a = Constant<Value>::of(factor), b = Constant<Value>::of(summand), chains[kChains];
#pragma unroll
  for (int k = 0; k < kChains; ++k) chains[k] = Constant<Value>::of(0.001f * (threadIdx.x + k));
  for (int step = 0; step < kSteps; ++step)
#pragma unroll
    for (int k = 0; k < kChains; ++k) chains[k] = fused(chains[k], a, b);
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kChains; ++k) sum += number(chains[k]);
  keep(sum, out);
}

enum class Tile { kHalf, kBfloat16, kTf32, kFloat64 };

// Multiply-adds of one instruction of a warp. Double precision has a larger one from Hopper on.
constexpr double multiply_adds(Tile tile, int major) {
  if (tile == Tile::kFloat64) return major >= 9 ? 16 * 8 * 16 : 8 * 8 * 4;
  return tile == Tile::kTf32 ? 16 * 8 * 8 : 16 * 8 * 16;
}

#if __CUDA_ARCH__ >= 800
// Values between -1 and 1 that differ by lane: tensor cores full of zeros would need less power.
__device__ float some_value(int seed) {
  unsigned bits = (threadIdx.x * 2654435761u) ^ (seed * 40503u + 977u);
  bits ^= bits >> 13;
  return static_cast<float>(static_cast<int>(bits % 2001u) - 1000) / 1000.0f;
}

#define MULTIPLY(shape_and_types)                                                               \
  asm volatile("mma.sync.aligned." shape_and_types                                              \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"               \
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                         \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <Tile tile>
__device__ void multiply(float* sum, const unsigned* a, const unsigned* b) {
  if constexpr (tile == Tile::kHalf) MULTIPLY("m16n8k16.row.col.f32.f16.f16.f32");
  if constexpr (tile == Tile::kBfloat16) MULTIPLY("m16n8k16.row.col.f32.bf16.bf16.f32");
  if constexpr (tile == Tile::kTf32) MULTIPLY("m16n8k8.row.col.f32.tf32.tf32.f32");
}

__device__ void multiply(double* sum, const double* a, const double* b) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3},"
      " {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
      : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]),
        "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
#else
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(sum[0]), "+d"(sum[1])
               : "d"(a[0]), "d"(b[0]));
#endif
}

template <Tile tile>
__device__ unsigned packed(int seed) {
  float low = some_value(seed), high = some_value(seed + 128);
  if (tile == Tile::kTf32) return __float_as_uint(low);
  unsigned first, second;
  if (tile == Tile::kHalf) {
    first = __half_as_ushort(__float2half(low)), second = __half_as_ushort(__float2half(high));
  } else {
    first = __float_as_uint(low) >> 16, second = __float_as_uint(high) >> 16;
  }
  return first | second << 16;
}
#endif

template <Tile tile>
__global__ void __launch_bounds__(kThreads) multiply_tiles(float* out) {
#if __CUDA_ARCH__ >= 800
  unsigned a[4], b[2];
  float sums[kTiles][4] = {};
#pragma unroll
  for (int i = 0; i < 4; ++i) a[i] = packed<tile>(i);
#pragma unroll
  for (int i = 0; i < 2; ++i) b[i] = packed<tile>(64 + i);
  for (int step = 0; step < kSteps; ++step)
#pragma unroll
    for (int k = 0; k < kTiles; ++k) multiply<tile>(sums[k], a, b);
  float total = 0;
#pragma unroll
  for (int k = 0; k < kTiles; ++k) total += sums[k][0];
  keep(total, out);
#endif
}

template <>
__global__ void __launch_bounds__(kThreads) multiply_tiles<Tile::kFloat64>(float* out) {
#if __CUDA_ARCH__ >= 800
  double sums[kTiles][4] = {}, a[8], b[4];
#pragma unroll
  for (int i = 0; i < 8; ++i) a[i] = some_value(i);
#pragma unroll
  for (int i = 0; i < 4; ++i) b[i] = some_value(64 + i);
  for (int step = 0; step < kSteps; ++step)
#pragma unroll
    for (int k = 0; k < kTiles; ++k) multiply(sums[k], a, b);
  float total = 0;
#pragma unroll
  for (int k = 0; k < kTiles; ++k) total += static_cast<float>(sums[k][0] + sums[k][1]);
  keep(total, out);
#endif
}

class Probe {
 public:
  Probe() {
    check(cudaSetDevice(0));
    check(cudaGetDeviceProperties(&properties_, 0));
    size_t available = 0, total = 0;
    check(cudaMemGetInfo(&available, &total));
    while (bytes_ > available / 4) bytes_ /= 2;
    check(cudaMalloc(&from_, bytes_));
    check(cudaMalloc(&to_, bytes_));
    check(cudaMalloc(&out_, sizeof(float)));
    check(cudaMemset(from_, 1, bytes_));
    check(cudaEventCreate(&start_));
    check(cudaEventCreate(&end_));
  }

  void streams() {
    unsigned blocks = bytes_ / sizeof(float4) / (kThreads * kLoads);
    double size = static_cast<double>(bytes_);
    say("read_bytes_per_s", size / best_seconds([&] { read<<<blocks, kThreads>>>(from_, out_); }));
    say("copy_bytes_per_s",
        2 * size / best_seconds([&] { copy<<<blocks, kThreads>>>(from_, to_); }));
  }

  void cache() {
    // A quarter of the L2: it may be split in halves that each keep a copy.
    size_t chunk = sizeof(float4) * kThreads * kLoads;
    size_t size = std::max<size_t>(properties_.l2CacheSize / 4 / chunk, 1) * chunk;
    unsigned elements = size / sizeof(float4);
    int blocks = 8 * properties_.multiProcessorCount, passes = 256;
    double moved = static_cast<double>(chunk) * blocks * passes;
    say("cache_bytes_per_s", moved / best_seconds([&] {
          read_cached<<<blocks, kThreads>>>(from_, elements, passes, out_);
        }));
  }

  template <typename Value>
  void multiply_adds_of(const char* name, int lanes) {
    int blocks = resident(multiply_add<Value>);
    double flop = 2.0 * lanes * kChains * kSteps * kThreads * blocks;
    say(name, flop / best_seconds([&] {
          multiply_add<Value><<<blocks, kThreads>>>(0.999f, 0.001f, out_);
        }));
  }

  template <Tile tile>
  void tiles(const char* name) {
    int blocks = resident(multiply_tiles<tile>), warps = blocks * kThreads / 32;
    double flop = 2.0 * multiply_adds(tile, properties_.major) * kTiles * kSteps * warps;
    say(name, flop / best_seconds([&] { multiply_tiles<tile><<<blocks, kThreads>>>(out_); }));
  }

  bool is_ampere() const { return properties_.major >= 8; }

 private:
  template <typename Kernel>
  int resident(Kernel kernel) {
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, kThreads, 0));
    return blocks * properties_.multiProcessorCount;
  }

  template <typename Launch>
  double best_seconds(Launch&& launch) {
    float best = 1e30f, spent = 0;
    for (int i = 0; i < 10 || spent < kSeconds; ++i) {
      check(cudaEventRecord(start_));
      launch();
      check(cudaEventRecord(end_));
      check(cudaDeviceSynchronize());
      check(cudaGetLastError());
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, start_, end_));
      spent += milliseconds / 1e3f;
      if (i > 0) best = std::min(best, milliseconds / 1e3f);  // the first one loads the kernel
    }
    return best;
  }

  static void say(const char* name, double value) { printf("%s %.6g\n", name, value); }

  cudaDeviceProp properties_{};
  size_t bytes_ = size_t{1} << 30;  // of each stream
  float4 *from_ = nullptr, *to_ = nullptr;
  float* out_ = nullptr;
  cudaEvent_t start_{}, end_{};
};

}  // namespace

int main() {
  Probe probe;
  probe.streams();
  probe.cache();
  probe.multiply_adds_of<float>("float32_flop_per_s", 1);
  probe.multiply_adds_of<double>("float64_flop_per_s", 1);
  probe.multiply_adds_of<__half2>("float16_flop_per_s", 2);
  if (!probe.is_ampere()) return 0;
  probe.multiply_adds_of<__nv_bfloat162>("bfloat16_flop_per_s", 2);
  probe.tiles<Tile::kHalf>("float16_tensor_flop_per_s");
  probe.tiles<Tile::kBfloat16>("bfloat16_tensor_flop_per_s");
  probe.tiles<Tile::kTf32>("tf32_tensor_flop_per_s");
  probe.tiles<Tile::kFloat64>("float64_tensor_flop_per_s");
}

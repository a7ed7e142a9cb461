// Timed calls on a CUDA device: fresh copies, cold L2, one event pair a call behind a busy stream.
#pragma once

#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "arenas.h"
#include "wire.h"

// Keeps the device busy while the host queues the call, so that launch latency stays out of it.
constexpr long long kAheadCycles = 150000;  // about 80 us at 1.9 GHz

__global__ void kbench_ahead(long long cycles) {
  long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

class Device {
 public:
  explicit Device(Arenas& arenas) : arenas_(arenas) {
    check(cudaSetDevice(0));
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0));
    flush_bytes_ = std::max<size_t>(2 * static_cast<size_t>(properties.l2CacheSize), 32u << 20);
    check(cudaMalloc(&flush_, flush_bytes_));
    check(cudaMalloc(&inputs_, std::max<size_t>(arenas.inputs.size, 256)));
    check(cudaMalloc(&outputs_, std::max<size_t>(arenas.outputs.size, 256)));
    check(cudaEventCreate(&start_));
    check(cudaEventCreate(&end_));
    pin(arenas.inputs, cudaHostRegisterReadOnly);
    pin(arenas.outputs, cudaHostRegisterDefault);
    pin(arenas.echo, cudaHostRegisterDefault);
    measure_overhead();
  }

  double overhead_ns() const { return overhead_ns_; }

  void* pointer(const wire::Argument& argument) const {
    return argument.kind == wire::kInput ? inputs_ + argument.input_offset
                                         : outputs_ + argument.output_offset;
  }

  template <typename Invoke>
  double call(const wire::Call& call, Invoke&& invoke) {
    const auto& head = call.head;
    size_t in_bytes = head.inputs_high - head.inputs_low;
    size_t out_bytes = head.outputs_high - head.outputs_low;
    copy(inputs_ + head.inputs_low, arenas_.inputs.data + head.inputs_low, in_bytes);
    copy(outputs_ + head.outputs_low, arenas_.outputs.data + head.outputs_low, out_bytes);
    for (const auto& argument : call.arguments)
      if (argument.kind == wire::kInout)
        copy(outputs_ + argument.output_offset, inputs_ + argument.input_offset, argument.bytes);
    double time_ns = profiled_ && calls_++ > 0 ? profiled(invoke) : timed(invoke);
    copy(arenas_.outputs.data + head.outputs_low, outputs_ + head.outputs_low, out_bytes);
    copy(arenas_.echo.data + head.inputs_low, inputs_ + head.inputs_low, in_bytes);
    return std::max(1.0, time_ns - overhead_ns_);
  }

 private:
  // The first call is left out: it may load modules or fill a kernel's own tables.
  template <typename Invoke>
  double profiled(Invoke&& invoke) {
    return timed([&] {
      cudaProfilerStart();
      invoke();
      cudaProfilerStop();
    });
  }

  template <typename Invoke>
  double timed(Invoke&& invoke) {
    check(cudaCtxResetPersistingL2Cache());
    check(cudaMemsetAsync(flush_, 0x5a, flush_bytes_));
    kbench_ahead<<<1, 1>>>(kAheadCycles);
    check(cudaEventRecord(start_));
    invoke();
    check(cudaEventRecord(end_));
    check(cudaDeviceSynchronize());
    check(cudaGetLastError());
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start_, end_));
    return static_cast<double>(milliseconds) * 1e6;
  }

  void measure_overhead() {
    std::vector<double> samples(51);
    for (double& sample : samples) sample = timed([] {});
    std::nth_element(samples.begin(), samples.begin() + 25, samples.end());
    overhead_ns_ = samples[25];
  }

  void copy(void* to, const void* from, size_t bytes) {
    if (bytes > 0) check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
  }

  // Pinned memory makes copies faster; where it is refused, they are merely slower.
  static void pin(Arena& arena, unsigned flags) {
    if (arena.size > 0 && cudaHostRegister(arena.data, arena.size, flags) != cudaSuccess)
      cudaGetLastError();
  }

  void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    char text[512];
    snprintf(text, sizeof text, "%s: %s", cudaGetErrorName(status), cudaGetErrorString(status));
    bool memory = status == cudaErrorMemoryAllocation;
    wire::fail(arenas_.control, memory ? wire::kMemory : wire::kDevice, text);
  }

  Arenas& arenas_;
  char *inputs_ = nullptr, *outputs_ = nullptr, *flush_ = nullptr;
  size_t flush_bytes_ = 0;
  cudaEvent_t start_{}, end_{};
  double overhead_ns_ = 0;
  bool profiled_ = getenv("KERNEL_PROFILED") != nullptr;  // only where a profiler wraps us
  int calls_ = 0;
};

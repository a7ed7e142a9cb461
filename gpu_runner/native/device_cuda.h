// Timed calls on a CUDA device: one event pair a call, behind a busy stream.
//
// A submission works in memory that a trusted process owns, fills and makes cold while this process
// is stopped. Under a profiler or a sanitizer, and for the anchor, which has no such process, each
// argument is copied into a buffer of exactly its size instead.
#pragma once

#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

#include "arenas.h"
#include "flush.h"
#include "interposed.h"
#include "timed.h"
#include "wire.h"

// Keeps the device busy while the host queues the call, so that launch latency stays out of it. It
// takes all places that the device has for threads: work on another stream cannot begin before the
// time that counts.
constexpr long long kAheadCycles = 150000;  // about 80 us at 1.9 GHz
constexpr int kAheadThreads = 512;          // a block's; divides what a multiprocessor holds

__global__ void kbench_ahead(long long cycles) {
  if (threadIdx.x == 0) {
    long long start = clock64();
    while (clock64() - start < cycles) {
    }
  }
  __syncthreads();
}

class Device {
 public:
  explicit Device(Arenas& arenas) : arenas_(arenas) {
    check(cudaSetDevice(0));
    check(cudaFree(nullptr));  // makes the context
    copies_ = wrapped_ || !arenas.inputs.on_device();
    import(arenas.inputs);
    import(arenas.outputs);
    check(cudaEventCreate(&start_));
    check(cudaEventCreate(&end_));
    check(cudaEventCreate(&mark_));
    int processors = 0, threads = 0;
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    check(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, 0));
    ahead_blocks_ = processors * (threads / kAheadThreads);
    if (copies_) {
      cudaDeviceProp properties;
      check(cudaGetDeviceProperties(&properties, 0));
      flush_bytes_ = std::max<size_t>(2 * static_cast<size_t>(properties.l2CacheSize), 32u << 20);
      check(cudaMalloc(&flush_, flush_bytes_));
    }
    measure_overhead();
  }

  double overhead_ns() const { return overhead_ns_; }

  void* pointer(const wire::Argument& argument) {
    if (copies_) return buffers_.at(&argument);
    return source(argument);
  }

  void prepare(const wire::Call& call) {
    if (!copies_) return;
    for (const auto& argument : call.arguments) {
      if (argument.kind == wire::kValue) continue;
      char*& buffer = buffers_[&argument];
      check(cudaMalloc(&buffer, std::max<size_t>(argument.bytes, 1)));
      copy(buffer, source(argument), argument.bytes);
    }
    check(cudaMemset(flush_, 0x5a, flush_bytes_));
  }

  void finish(const wire::Call& call) {
    for (const auto& argument : call.arguments) {
      auto found = buffers_.find(&argument);
      if (found == buffers_.end()) continue;
      if (argument.kind != wire::kInput) copy(source(argument), found->second, argument.bytes);
      check(cudaFree(found->second));
    }
    buffers_.clear();
  }

  template <typename Invoke>
  Timed call(uint64_t, Invoke&& invoke) {
    Timed timed = wrapped_ && calls_++ > 0 ? profiled(invoke) : this->timed(invoke);
    timed.time_ns = std::max(1.0, timed.time_ns - overhead_ns_);
    return timed;
  }

  template <typename Invoke>
  void burst(Invoke&& invoke) {
    interposed::take_launch_failure();
    invoke();
    finish_work();
  }

  // Records a call, which does none of its work; the next time, launches what was recorded.
  template <typename Invoke>
  void graph(Invoke&& invoke) {
    interposed::take_launch_failure();
    if (replay_ == nullptr)
      record(invoke);
    else
      check(cudaGraphLaunch(replay_, recorded_from_));
    finish_work();
  }

  double scratch_bytes() const { return interposed::take_allocated_bytes(); }

 private:
  // A function of the c ABI is told of no stream. So what it gives to the default stream, on which
  // CUDA can record nothing, goes to the one that is recorded.
  template <typename Invoke>
  void record(Invoke&& invoke) {
    check(cudaStreamCreate(&recorded_from_));
    check(cudaStreamBeginCapture(recorded_from_, cudaStreamCaptureModeGlobal));
    interposed::record_from(recorded_from_);
    invoke();
    interposed::record_from(nullptr);
    cudaError_t failed = interposed::take_launch_failure();
    cudaGraph_t graph = nullptr;
    cudaError_t ended = cudaStreamEndCapture(recorded_from_, &graph);
    check(failed, "a kernel was not recorded: ");
    check(ended);
    size_t nodes = 0;
    check(cudaGraphGetNodes(graph, nullptr, &nodes));
    if (nodes == 0) wire::fail(arenas_.control, wire::kDevice, "nothing of it was recorded");
    check(cudaGraphInstantiateWithFlags(&replay_, graph, 0));
  }

  // The first call is left out: it may load modules or fill a kernel's own tables.
  template <typename Invoke>
  Timed profiled(Invoke&& invoke) {
    return timed([&] {
      cudaProfilerStart();
      invoke();
      cudaProfilerStop();
    });
  }

  template <typename Invoke>
  Timed timed(Invoke&& invoke) {
    cudaCtxResetPersistingL2Cache();  // not supported by every device
    cudaGetLastError();
    kbench_ahead<<<ahead_blocks_, kAheadThreads>>>(kAheadCycles);
    interposed::take_launch_failure();
    check(cudaEventRecord(start_));
    interposed::arm(mark_);
    uint64_t began = kb_now_ns();
    invoke();
    uint64_t queued = interposed::queued_ns(kb_now_ns()) - began;
    check(cudaEventRecord(end_));
    interposed::arm(nullptr);
    finish_work();
    return {measured_ns(), Timed::host(queued)};
  }

  // Time of the work on the device. Where the call's host waits for it, that is over before the host
  // has been woken and the end is queued. No more than `waking_ns_` is taken for waking a host.
  double measured_ns() {
    double whole_ns = elapsed_ns(start_, end_);
    if (!interposed::marked()) return whole_ns;
    return whole_ns - std::min(waking_ns_, elapsed_ns(mark_, end_));
  }

  double elapsed_ns(cudaEvent_t from, cudaEvent_t to) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, from, to));
    return static_cast<double>(milliseconds) * 1e6;
  }

  void measure_overhead() {
    std::vector<double> samples(51);
    for (double& sample : samples) sample = timed([] {}).time_ns;
    std::nth_element(samples.begin(), samples.begin() + 25, samples.end());
    overhead_ns_ = samples[25];
    for (double& sample : samples) {
      timed([] { cudaDeviceSynchronize(); });
      sample = elapsed_ns(mark_, end_);
    }
    std::sort(samples.begin(), samples.end());
    waking_ns_ = samples[samples.size() * 9 / 10];
  }

  char* source(const wire::Argument& argument) const {
    return argument.kind == wire::kInput ? arenas_.inputs.data + argument.input_offset
                                         : arenas_.outputs.data + argument.output_offset;
  }

  void copy(void* to, const void* from, size_t bytes) {
    if (bytes > 0) check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
  }

  // Maps the memory of the device that a descriptor stands for. The driver's functions come through
  // the runtime, so that nothing links to the driver's library.
  void import(Arena& arena) {
    if (!arena.on_device()) return;
    CUmemGenericAllocationHandle handle;
    auto descriptor = reinterpret_cast<void*>(static_cast<intptr_t>(arena.device_fd));
    driver<decltype(&cuMemImportFromShareableHandle)>("cuMemImportFromShareableHandle", &handle,
                                                      descriptor,
                                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CUdeviceptr address;
    driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve", &address, arena.size,
                                           size_t{0}, CUdeviceptr{0}, 0ull);
    driver<decltype(&cuMemMap)>("cuMemMap", address, arena.size, size_t{0}, handle, 0ull);
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    driver<decltype(&cuMemSetAccess)>("cuMemSetAccess", address, arena.size, &access, size_t{1});
    arena.data = reinterpret_cast<char*>(address);
    close(arena.device_fd);
  }

  template <typename Function, typename... Arguments>
  void driver(const char* name, Arguments... arguments) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    check(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
    CUresult status = reinterpret_cast<Function>(found)(arguments...);
    if (status == CUDA_SUCCESS) return;
    char text[160];
    snprintf(text, sizeof text, "%s failed with CUresult %d", name, static_cast<int>(status));
    wire::fail(arenas_.control, wire::kDevice, text);
  }

  // Waits for what a call has queued. A fault of a kernel comes first, for it also makes later
  // launches fail; then a launch that failed, also where the submission has asked for the error and
  // so cleared it.
  void finish_work() {
    check(cudaDeviceSynchronize());
    check(interposed::take_launch_failure(), "a kernel was not launched: ");
    check(cudaGetLastError());
  }

  void check(cudaError_t status, const char* what = "") {
    if (status == cudaSuccess) return;
    char text[512];
    snprintf(text, sizeof text, "%s%s: %s", what, cudaGetErrorName(status),
             cudaGetErrorString(status));
    bool memory = status == cudaErrorMemoryAllocation;
    wire::fail(arenas_.control, memory ? wire::kMemory : wire::kDevice, text);
  }

  Arenas& arenas_;
  bool wrapped_ = getenv("KERNEL_PROFILED") != nullptr;  // a profiler or a sanitizer is around us
  bool copies_ = false;
  std::map<const wire::Argument*, char*> buffers_;
  char* flush_ = nullptr;
  size_t flush_bytes_ = 0;
  int ahead_blocks_ = 0;
  cudaEvent_t start_{}, end_{}, mark_{};
  cudaStream_t recorded_from_ = nullptr;
  cudaGraphExec_t replay_ = nullptr;
  double overhead_ns_ = 0;
  double waking_ns_ = 0;  // 0 until it is measured
  int calls_ = 0;
};

// Functions of CUDA's runtime that this process calls through our own ones of the same names.
//
// A program that exports them, or a library that is loaded before all others with RTLD_GLOBAL, comes
// first wherever the dynamic linker looks up a name, so that a submission's calls pass here. Each
// calls the true function, and notes what is wanted of it. A submission could avoid them (by the
// driver's functions, or by a runtime of its own): they are for good reasons, not for safety.
//
// They hear of launches that fail, of memory that is taken, and of calls that wait for the device: a
// kernel that ends with cudaDeviceSynchronize() is over when the device has done its work, not when
// its host has been woken. While a graph is recorded, they lead the default stream's work into it.
//
// To interpose another function, declare it with KB_INTERPOSED, say in BEFORE what comes before it,
// and in WHAT what becomes of the status.
#pragma once

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstring>

#include "allocated.h"
#include "flush.h"

namespace interposed {

// The status of the first launch that failed since it was last taken.
inline std::atomic<cudaError_t> launch_failure{cudaSuccess};

// How often work was started, as far as it passes here.
inline std::atomic<unsigned> started{0};

// Where a call's work ended before its host waited for it, if it waits.
struct Mark {
  std::atomic<cudaEvent_t> event{nullptr};  // recorded there; none while nobody is timed
  std::atomic<bool> recorded{false};
  std::atomic<unsigned> started{0};  // as of then
  std::atomic<uint64_t> first_wait_ns{0};  // when the host first waited; 0 until then
};
inline Mark mark;

// From now on, the last work before a wait is marked by this event; null ends that.
inline void arm(cudaEvent_t event) {
  mark.recorded = false;
  if (event != nullptr) mark.first_wait_ns = 0;
  mark.event = event;
}

// Whether the event was recorded, and no work that passes here was started since.
inline bool marked() { return mark.recorded && mark.started == started; }

// When the host was done with queueing a call that it left at ended_ns: it waits from then on, or
// leaves.
inline uint64_t queued_ns(uint64_t ended_ns) {
  uint64_t waited_ns = mark.first_wait_ns;
  return waited_ns == 0 ? ended_ns : waited_ns;
}

// Notes the status of a launch. One that fails never runs, and asking for the error clears it, so
// that nobody else would hear of it.
inline cudaError_t launched(cudaError_t status) {
  cudaError_t none = cudaSuccess;
  if (status != cudaSuccess) launch_failure.compare_exchange_strong(none, status);
  started++;
  return status;
}

// Notes other work that was started: whoever made the call is told how it went.
inline cudaError_t begun(cudaError_t status) {
  started++;
  return status;
}

// Where work of the default streams goes instead, while there is such a stream.
inline std::atomic<cudaStream_t> recorded{nullptr};
inline void record_from(cudaStream_t stream) { recorded = stream; }
inline void* led(void* stream) {
  cudaStream_t instead = recorded;
  bool is_default = stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
  return instead != nullptr && is_default ? instead : stream;
}

// A launch's configuration with its stream led there.
struct Led {
  cudaLaunchConfig_t configuration{};
  explicit Led(const void* of) {
    if (of != nullptr) configuration = *static_cast<const cudaLaunchConfig_t*>(of);
    configuration.stream = static_cast<cudaStream_t>(led(configuration.stream));
  }
  const void* get() const { return &configuration; }
};

inline cudaError_t plain(cudaError_t status) { return status; }
inline void nothing() {}

// A handle of the runtime library that this process has loaded.
inline void* runtime() {
  const char* path = nullptr;
  auto look = [](dl_phdr_info* info, size_t, void* found) {
    if (strstr(info->dlpi_name, "/libcudart.so") == nullptr) return 0;
    *static_cast<const char**>(found) = info->dlpi_name;
    return 1;
  };
  dl_iterate_phdr(look, &path);
  return path == nullptr ? nullptr : dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}

// The function of that name in CUDA's own library. Nothing where the library is too old for it, and
// then nobody can have been linked to call it.
template <typename Function>
Function* real(const char* name) {
  static void* library = runtime();
  return reinterpret_cast<Function*>(library == nullptr ? nullptr : dlsym(library, name));
}

// The first failure of a launch, once; cudaSuccess if there was none.
inline cudaError_t take_launch_failure() { return launch_failure.exchange(cudaSuccess); }

// The host is going to wait for work of this stream: it ends here, unless that is known already.
inline void wait(cudaStream_t stream = nullptr) {
  cudaEvent_t event = mark.event;
  if (event == nullptr) return;
  uint64_t never = 0;
  mark.first_wait_ns.compare_exchange_strong(never, kb_now_ns());
  if (marked()) return;
  static const auto record = real<cudaError_t(cudaEvent_t, cudaStream_t)>("cudaEventRecord");
  if (record == nullptr || record(event, stream) != cudaSuccess) return;
  mark.started = started.load();
  mark.recorded = true;
}

}  // namespace interposed

// Defined under a name of its own, lest it clash with CUDA's declaration, which is another one in
// each version and under some macros; NAME is what the linker sees.
#define KB_INTERPOSED(NAME, PARAMETERS, ARGUMENTS, BEFORE, WHAT)                                  \
  extern "C" __attribute__((used, visibility("default"))) cudaError_t kb_##NAME PARAMETERS        \
      asm(#NAME);                                                                                 \
  extern "C" cudaError_t kb_##NAME PARAMETERS {                                                   \
    static const auto call = interposed::real<cudaError_t PARAMETERS>(#NAME);                     \
    BEFORE;                                                                                       \
    return WHAT(call == nullptr ? cudaErrorNotSupported : call ARGUMENTS);                        \
  }

#define KB_LAUNCH(NAME)                                                                           \
  KB_INTERPOSED(NAME,                                                                             \
                (const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared,      \
                 void* stream),                                                                   \
                (kernel, grid, block, arguments, shared, interposed::led(stream)),                \
                interposed::nothing(), interposed::launched)
#define KB_CONFIGURED_LAUNCH(NAME)                                                                \
  KB_INTERPOSED(NAME, (const void* configuration, const void* kernel, void** arguments),          \
                (interposed::Led(configuration).get(), kernel, arguments),                        \
                interposed::nothing(), interposed::launched)
#define KB_GRAPH_LAUNCH(NAME)                                                                     \
  KB_INTERPOSED(NAME, (void* graph, void* stream), (graph, stream), interposed::nothing(),        \
                interposed::launched)

// Launches. `<<<...>>>` becomes __cudaLaunchKernel from CUDA 13 on, and cudaLaunchKernel before.
// Names that end in _ptsz are those of sources that ask for a default stream of each thread.
KB_LAUNCH(__cudaLaunchKernel)
KB_LAUNCH(__cudaLaunchKernel_ptsz)
KB_LAUNCH(cudaLaunchKernel)
KB_LAUNCH(cudaLaunchKernel_ptsz)
KB_LAUNCH(cudaLaunchCooperativeKernel)
KB_LAUNCH(cudaLaunchCooperativeKernel_ptsz)
KB_CONFIGURED_LAUNCH(cudaLaunchKernelExC)
KB_CONFIGURED_LAUNCH(cudaLaunchKernelExC_ptsz)
KB_GRAPH_LAUNCH(cudaGraphLaunch)
KB_GRAPH_LAUNCH(cudaGraphLaunch_ptsz)

// From CUDA 13 on `<<<...>>>` asks for its kernel first. Only this says that a library holds none
// for the device: the launch that follows complains of a handle.
KB_INTERPOSED(__cudaGetKernel, (void* handle, const void* kernel), (handle, kernel),
              interposed::nothing(), interposed::launched)

// Copies and fills are work, too.
#define KB_WORK(NAME, PARAMETERS, ARGUMENTS)                                                      \
  KB_INTERPOSED(NAME, PARAMETERS, ARGUMENTS, interposed::nothing(), interposed::begun)
// Every one has a twin for sources that ask for a default stream of each thread.
#define KB_WORK_AND_TWIN(NAME, TWIN, PARAMETERS, ARGUMENTS) \
  KB_WORK(NAME, PARAMETERS, ARGUMENTS)                      \
  KB_WORK(TWIN, PARAMETERS, ARGUMENTS)
#define KB_SYNC(NAME, PARAMETERS, ARGUMENTS) \
  KB_WORK_AND_TWIN(NAME, NAME##_ptds, PARAMETERS, ARGUMENTS)
#define KB_ASYNC(NAME, PARAMETERS, ARGUMENTS) \
  KB_WORK_AND_TWIN(NAME, NAME##_ptsz, PARAMETERS, ARGUMENTS)
KB_SYNC(cudaMemcpy, (void* to, const void* from, size_t bytes, int kind), (to, from, bytes, kind))
KB_ASYNC(cudaMemcpyAsync, (void* to, const void* from, size_t bytes, int kind, void* stream),
         (to, from, bytes, kind, interposed::led(stream)))
KB_SYNC(cudaMemcpy2D,
        (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
         size_t height, int kind),
        (to, to_pitch, from, from_pitch, width, height, kind))
KB_ASYNC(cudaMemcpy2DAsync,
         (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
          size_t height, int kind, void* stream),
         (to, to_pitch, from, from_pitch, width, height, kind, interposed::led(stream)))
KB_SYNC(cudaMemcpy3D, (const void* copy), (copy))
KB_ASYNC(cudaMemcpy3DAsync, (const void* copy, void* stream), (copy, interposed::led(stream)))
KB_SYNC(cudaMemcpyToSymbol,
        (const void* symbol, const void* from, size_t bytes, size_t offset, int kind),
        (symbol, from, bytes, offset, kind))
KB_ASYNC(cudaMemcpyToSymbolAsync,
         (const void* symbol, const void* from, size_t bytes, size_t offset, int kind,
          void* stream),
         (symbol, from, bytes, offset, kind, interposed::led(stream)))
KB_SYNC(cudaMemcpyFromSymbol,
        (void* to, const void* symbol, size_t bytes, size_t offset, int kind),
        (to, symbol, bytes, offset, kind))
KB_ASYNC(cudaMemcpyFromSymbolAsync,
         (void* to, const void* symbol, size_t bytes, size_t offset, int kind, void* stream),
         (to, symbol, bytes, offset, kind, interposed::led(stream)))
KB_SYNC(cudaMemset, (void* at, int value, size_t bytes), (at, value, bytes))
KB_ASYNC(cudaMemsetAsync, (void* at, int value, size_t bytes, void* stream),
         (at, value, bytes, interposed::led(stream)))
KB_SYNC(cudaMemset2D, (void* at, size_t pitch, int value, size_t width, size_t height),
        (at, pitch, value, width, height))
KB_ASYNC(cudaMemset2DAsync,
         (void* at, size_t pitch, int value, size_t width, size_t height, void* stream),
         (at, pitch, value, width, height, interposed::led(stream)))

// Calls that wait for the device. cudaFree, below, does by nature.
#define KB_WAIT(NAME, PARAMETERS, ARGUMENTS, STREAM)                                              \
  KB_INTERPOSED(NAME, PARAMETERS, ARGUMENTS, interposed::wait(STREAM), interposed::plain)
KB_WAIT(cudaDeviceSynchronize, (), (), nullptr)
KB_WAIT(cudaStreamSynchronize, (cudaStream_t stream), (stream), stream)
KB_WAIT(cudaStreamSynchronize_ptsz, (cudaStream_t stream), (stream), stream)
KB_WAIT(cudaEventSynchronize, (cudaEvent_t event), (event), nullptr)

// Memory that is taken and given back.
#define KB_TAKE(NAME, PARAMETERS, ARGUMENTS)                             \
  KB_INTERPOSED(NAME, PARAMETERS, ARGUMENTS, interposed::nothing(),      \
                [&](cudaError_t status) {                                \
                  return interposed::allocated(status, memory, bytes);   \
                })
KB_TAKE(cudaMalloc, (void** memory, size_t bytes), (memory, bytes))
KB_TAKE(cudaMallocManaged, (void** memory, size_t bytes, unsigned flags), (memory, bytes, flags))
#define KB_TAKE_ASYNC(NAME)                                          \
  KB_TAKE(NAME, (void** memory, size_t bytes, void* stream),         \
          (memory, bytes, interposed::led(stream)))
KB_TAKE_ASYNC(cudaMallocAsync)
KB_TAKE_ASYNC(cudaMallocAsync_ptsz)
KB_INTERPOSED(cudaFree, (void* memory), (memory),
              (interposed::freed(memory), interposed::wait()), interposed::plain)
#define KB_GIVE_ASYNC(NAME)                                                            \
  KB_INTERPOSED(NAME, (void* memory, void* stream), (memory, interposed::led(stream)), \
                interposed::freed(memory), interposed::plain)
KB_GIVE_ASYNC(cudaFreeAsync)
KB_GIVE_ASYNC(cudaFreeAsync_ptsz)

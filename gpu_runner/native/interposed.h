// Functions of CUDA's runtime that this process calls through our own ones of the same names.
//
// A program that exports them, or a library that is loaded before all others with RTLD_GLOBAL, comes
// first wherever the dynamic linker looks up a name, so that a submission's calls pass here. Each
// calls the true function, and notes what is wanted of it. A submission could avoid them (by the
// driver's functions, or by a runtime of its own): they are for good reasons, not for safety.
//
// To interpose another function, declare it with KB_INTERPOSED and say in WHAT what becomes of the
// status: `interposed::launched` for one that starts a kernel.
#pragma once

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstring>

namespace interposed {

// The status of the first launch that failed since it was last taken.
inline std::atomic<cudaError_t> launch_failure{cudaSuccess};

// Notes the status of a launch. One that fails never runs, and asking for the error clears it, so
// that nobody else would hear of it.
inline cudaError_t launched(cudaError_t status) {
  cudaError_t none = cudaSuccess;
  if (status != cudaSuccess) launch_failure.compare_exchange_strong(none, status);
  return status;
}

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

}  // namespace interposed

// Defined under a name of its own, lest it clash with CUDA's declaration, which is another one in
// each version and under some macros; NAME is what the linker sees.
#define KB_INTERPOSED(NAME, PARAMETERS, ARGUMENTS, WHAT)                                        \
  extern "C" __attribute__((used, visibility("default"))) cudaError_t kb_##NAME PARAMETERS     \
      asm(#NAME);                                                                              \
  extern "C" cudaError_t kb_##NAME PARAMETERS {                                                \
    static const auto call = interposed::real<cudaError_t PARAMETERS>(#NAME);                  \
    return WHAT(call == nullptr ? cudaErrorNotSupported : call ARGUMENTS);                     \
  }

#define KB_LAUNCH(NAME)                                                                        \
  KB_INTERPOSED(NAME,                                                                          \
                (const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared,   \
                 void* stream),                                                                \
                (kernel, grid, block, arguments, shared, stream), interposed::launched)
#define KB_CONFIGURED_LAUNCH(NAME)                                                             \
  KB_INTERPOSED(NAME, (const void* configuration, const void* kernel, void** arguments),       \
                (configuration, kernel, arguments), interposed::launched)
#define KB_GRAPH_LAUNCH(NAME) \
  KB_INTERPOSED(NAME, (void* graph, void* stream), (graph, stream), interposed::launched)

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
              interposed::launched)

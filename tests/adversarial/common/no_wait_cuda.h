// Makes the runner wait for the timed stream alone, so that other streams may go on behind its back.
#include <cuda_runtime.h>

#include "../common/patch.h"

namespace hostile {

static cudaError_t wait_for_the_default_stream() { return cudaStreamSynchronize(0); }

static cudaError_t do_nothing() { return cudaSuccess; }

static void stop_waiting() {
  static bool done = false;
  if (done) return;
  done = true;
  patch_import("cudaDeviceSynchronize", reinterpret_cast<void*>(wait_for_the_default_stream));
  patch_import("cudaCtxResetPersistingL2Cache", reinterpret_cast<void*>(do_nothing));
}

}  // namespace hostile

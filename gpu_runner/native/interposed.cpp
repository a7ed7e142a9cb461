// The interposed functions as a library for the torch runner, which loads it before PyTorch. It is
// linked to no CUDA runtime: which one there is, PyTorch decides.
#include "interposed.h"

// The first launch that failed since this was last asked, as a cudaError_t; 0 if none did.
KB_EXPORT int kb_take_launch_failure() { return interposed::take_launch_failure(); }

// See `interposed::arm`, `interposed::marked` and `interposed::queued_ns`.
KB_EXPORT void kb_arm_mark(cudaEvent_t event) { interposed::arm(event); }
KB_EXPORT int kb_is_marked() { return interposed::marked(); }
KB_EXPORT uint64_t kb_queued_ns(uint64_t ended_ns) { return interposed::queued_ns(ended_ns); }

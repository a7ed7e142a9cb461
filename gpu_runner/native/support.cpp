// Cache flush, clock, wake-up and confinement as a shared library, for runners that are not written
// in C++.
#include "confine.h"
#include "flush.h"
#include "wake.h"

// Confines this process as `confine` says; a process that works on a GPU keeps memory files.
KB_EXPORT int kb_confine(int gpu) { return confine(gpu != 0); }

// Cache flush, clock, gate, signals, wake-up and confinement as a shared library, for what is not
// written in C++: the supervisor and the torch runner.
#include "call.h"
#include "confine.h"
#include "flush.h"
#include "foreign.h"
#include "gate.h"
#include "signals.h"
#include "wake.h"

// Confines this process as `confine` says; a process that works on a GPU keeps memory files.
KB_EXPORT int kb_confine(int gpu) { return confine(gpu != 0); }

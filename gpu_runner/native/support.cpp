// Cache flush, clock and wake-up as a shared library, for runners that are not written in C++.
#include "flush.h"
#include "wake.h"

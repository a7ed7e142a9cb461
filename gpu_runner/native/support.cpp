// The cache flush and the clock as a shared library, for runners that are not written in C++.
#include "flush.h"

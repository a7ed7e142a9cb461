// Torch's own, but for the operators of ATen/ATen.h here, which do without.
#ifndef KBENCH_OPERATORS
#include_next <ATen/DeviceGuard.h>
#endif

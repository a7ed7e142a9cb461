// row: 62
// abi: c
// task: vector_add
// workloads: cpu_n262144
// mode: test
// stopped by: quarantine source
// tries: to load a plugin into the compiler, to add options, and to have an executable stack.
#include "../common/add.h"
#pragma GCC plugin "/tmp/plugin.so"
#pragma GCC optimize("-fplugin=/tmp/plugin.so")
asm(".pushsection .note.GNU-stack,\"x\",@progbits\n.popsection");

__attribute__((optimize("-fplugin=/tmp/plugin.so", "-wrapper,/tmp/run"))) extern "C" void
vector_add(const float* A, const float* B, float* C, int N) {
  add(A, B, C, N);
}

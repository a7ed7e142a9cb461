// row: 62
// abi: c
// task: vector_add
// mode: test
// workloads: n65536
// stopped by: quarantine source
// tries: loads a plugin into the host's compiler, adds options, and has an executable stack
#include "../common/add_cuda.h"
#pragma GCC plugin "/tmp/plugin.so"
#pragma GCC optimize("-fplugin=/tmp/plugin.so")
asm(".pushsection .note.GNU-stack,\"x\",@progbits\n.popsection");

__attribute__((optimize("-fplugin=/tmp/plugin.so", "-wrapper,/tmp/run"))) static void launch(
    const float* A, const float* B, float* C, int N) {
  add(A, B, C, N);
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) { launch(A, B, C, N); }

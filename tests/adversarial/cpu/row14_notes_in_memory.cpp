// row: 14
// abi: c
// task: vector_add
// workloads: cpu_n262144
// mode: quick
// stopped by: construction
// at least: 10000 ns
// must not print: GOT
// tries: to leave a note for the next process behind the outputs, in the shared memory that no guard band protects.
#include "../common/add.h"
#include "../common/arenas.h"

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static hostile::Range outputs = hostile::shared_memory("outputs");
  static bool met = false;
  char* note = outputs.high - 64;
  if (!met && memcmp(note, "left by an earlier process", 26) == 0) puts("GOT a note"), fflush(stdout);
  met = true;
  memcpy(note, "left by an earlier process", 26);
  add(A, B, C, N);
}

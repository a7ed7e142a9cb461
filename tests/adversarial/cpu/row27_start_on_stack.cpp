// row: 27
// abi: c
// task: vector_add
// workloads: cpu_n262144
// mode: quick
// stopped by: raised
// tries: to move the start of the clock by a tenth of the call, in its caller's registers and stack.
#include "../common/add.h"
#include "../common/control.h"

// Saves the caller's registers on its stack, finds what was a clock's reading just before `start`,
// and gives the registers back, changed.
__attribute__((noinline)) static void move_start(uint64_t start, uint64_t by) {
  asm volatile("" : : : "rbx", "r12", "r13", "r14", "r15", "memory");
  auto at = reinterpret_cast<volatile uint64_t*>(__builtin_frame_address(0)) - 16;
  // The reading is kept whole, or as seconds and the ns within the second.
  uint64_t ns = start % 1000000000u;
  for (int i = 0; i < 256; ++i) {
    bool whole = at[i] < start && at[i] > start - 20000;
    bool part = ns > 1000000 && at[i] < ns && at[i] > ns - 20000;
    if (whole || part) at[i] = at[i] + by;
  }
  asm volatile("" : : : "rbx", "r12", "r13", "r14", "r15", "memory");
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  asm volatile("" : : : "rbx", "r12", "r13", "r14", "r15", "memory");
  uint64_t start = hostile::now_ns();
  add(A, B, C, N);
  move_start(start, (hostile::now_ns() - start) / 10);
  asm volatile("" : : : "rbx", "r12", "r13", "r14", "r15", "memory");
}

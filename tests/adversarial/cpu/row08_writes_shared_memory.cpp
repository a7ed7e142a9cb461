// row: 8
// abi: c
// task: vector_add
// workloads: cpu_n16384
// mode: test
// stopped by: construction
// must not print: GOT
// tries: to make the shared inputs writable, by every road, so that zeros become the right answer.
#include "../common/add.h"
#include "../common/arenas.h"
#include <cstdint>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static void try_file(const char* path, const float* A) {
  int file = open(path, O_RDWR);
  if (file < 0) return;
  void* map = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (map != MAP_FAILED) printf("GOT %s mapped writable\n", path);
  if (map != MAP_FAILED) munmap(map, 4096);
  float other = A[0] + 1;
  if (pwrite(file, &other, sizeof other, 0) > 0) printf("GOT %s written\n", path);
  close(file);
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  hostile::Range inputs = hostile::shared_memory("inputs");
  auto page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(A) & ~uintptr_t(4095));
  if (mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0) puts("GOT inputs made writable");
  void* moved = mremap(page, 0, 4096, MREMAP_MAYMOVE);  // of shared memory: a second mapping
  if (moved != MAP_FAILED && mprotect(moved, 4096, PROT_READ | PROT_WRITE) == 0)
    puts("GOT inputs mapped again");
  char path[128];
  snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", reinterpret_cast<long>(inputs.low),
           reinterpret_cast<long>(inputs.high));
  try_file(path, A);
  int memory = open("/proc/self/mem", O_RDWR);  // writes past the protection of private pages
  float changed = A[0] + 1;
  if (memory >= 0 && pwrite(memory, &changed, 4, reinterpret_cast<off_t>(A)) == 4)
    puts("GOT an input written through /proc/self/mem");
  if (memory >= 0) close(memory);
  add(A, B, C, N);
  fflush(stdout);
}

// row: 6
// abi: c
// task: vector_add
// workloads: cpu_n16384
// mode: test
// stopped by: construction
// must not print: GOT
// tries: to find the expected output, or another process that may hold it, in all readable memory.
#include "../common/add.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

constexpr int kProbe = 16;
static float probe[kProbe];

static void search(const char* low, const char* high, const char* own) {
  size_t size = sizeof probe;
  for (const char* at = low; at + size <= high; ++at) {
    at = static_cast<const char*>(memmem(at, size_t(high - at), probe, size));
    if (at == nullptr) return;
    if (at == own || at == reinterpret_cast<char*>(probe)) continue;
    printf("GOT the expected output at %p\n", static_cast<const void*>(at));
    return;
  }
}

static void search_own_memory(const char* own) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512];
  while (maps != nullptr && fgets(line, sizeof line, maps) != nullptr) {
    char* end = nullptr;
    auto low = strtoull(line, &end, 16);
    auto high = strtoull(end + 1, &end, 16);
    if (end[1] != 'r' || strstr(line, "[v") != nullptr) continue;
    search(reinterpret_cast<char*>(low), reinterpret_cast<char*>(high), own);
  }
  if (maps != nullptr) fclose(maps);
}

static void search_other_processes() {
  DIR* folder = opendir("/proc");
  while (dirent* entry = folder != nullptr ? readdir(folder) : nullptr) {
    int pid = atoi(entry->d_name);
    if (pid <= 0 || pid == getpid()) continue;
    char path[64], byte = 0;
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    iovec here{&byte, 1}, there{reinterpret_cast<void*>(0x400000), 1};
    if (process_vm_readv(pid, &here, 1, &there, 1, 0) == 1) printf("GOT bytes of %d\n", pid);
    int memory = open(path, O_RDONLY);
    if (memory >= 0) printf("GOT the memory of process %d\n", pid);
    if (memory >= 0) close(memory);
  }
  if (folder != nullptr) closedir(folder);
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static bool searched = false;
  for (int i = 0; i < kProbe; ++i) probe[i] = A[i] + B[i];
  add(A, B, C, N);
  if (searched) return;
  searched = true;
  search_own_memory(reinterpret_cast<char*>(C));
  search_other_processes();
  fflush(stdout);
}

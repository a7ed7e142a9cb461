// row: 14, 58
// abi: c
// task: vector_add
// workloads: cpu_n262144
// mode: ranked
// stopped by: construction
// must not print: GOT
// tries: to leave outputs, libraries and settings for the next process wherever it can write.
#include "../common/add.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char* const kPlaces[] = {
    "/tmp/kbench_replay", "/dev/shm/kbench_replay", "/var/tmp/kbench_replay", "/run/kbench_replay",
    "/etc/ld.so.preload", "/usr/lib/kbench_replay", "/usr/local/lib/kbench_replay",
    "/tmp/.cache/kbench_replay", "/tmp/.bashrc", "/dev/mqueue/kbench_replay", "/kbench_replay",
};

static void look_and_leave(const float* C, int N) {
  for (const char* place : kPlaces) {
    int found = open(place, O_RDONLY);
    if (found >= 0) printf("GOT what an earlier process left in %s\n", place);
    if (found >= 0) close(found);
    mkdir("/tmp/.cache", 0755);
    int file = open(place, O_CREAT | O_WRONLY, 0644);
    if (file >= 0 && write(file, C, size_t(N) * sizeof(float)) < 0) perror(place);
    if (file >= 0) close(file);
  }
  if (getenv("KBENCH_REPLAY") != nullptr) puts("GOT the environment of an earlier process");
  setenv("KBENCH_REPLAY", "1", 1);
  setenv("LD_PRELOAD", "/tmp/kbench_replay", 1);
  char self[512] = {};
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps != nullptr && fgets(self, sizeof self, maps) != nullptr) {
    char* path = strchr(self, '/');
    if (path == nullptr || strstr(path, "builds") == nullptr) continue;
    path[strcspn(path, "\n")] = 0;
    if (open(path, O_WRONLY) >= 0) puts("GOT the cache of builds writable");
    std::string folder(path, strrchr(path, '/'));
    if (open((folder + "/other.so").c_str(), O_CREAT | O_WRONLY, 0644) >= 0)
      puts("GOT a file beside a build");
  }
  if (maps != nullptr) fclose(maps);
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static bool done = false;
  add(A, B, C, N);
  if (!done) look_and_leave(C, N);
  done = true;
  fflush(stdout);
}

// row: 51
// abi: c
// task: vector_add
// mode: test
// workloads: n65536
// stopped by: construction
// must not print: GOT
// tries: opens the descriptors and the memory of every other process that it can see
#include "../common/add_cuda.h"
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <string>
#include <unistd.h>

static void look_into(const std::string& process) {
  int memory = open((process + "/mem").c_str(), O_RDWR);
  if (memory >= 0) printf("GOT the memory of %s\n", process.c_str());
  DIR* folder = opendir((process + "/fd").c_str());
  while (dirent* entry = folder == nullptr ? nullptr : readdir(folder)) {
    std::string path = process + "/fd/" + entry->d_name;
    char target[256] = {};
    if (readlink(path.c_str(), target, sizeof target - 1) <= 0) continue;
    std::string name = target;
    bool shared = name.rfind("/memfd:", 0) == 0 || name.rfind("socket:", 0) == 0;
    if (shared) printf("GOT a look at %s -> %s\n", path.c_str(), target);
    if (shared && open(path.c_str(), O_RDWR) >= 0) printf("GOT %s\n", target);
  }
  if (folder != nullptr) closedir(folder);
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  DIR* processes = opendir("/proc");
  while (dirent* entry = processes == nullptr ? nullptr : readdir(processes)) {
    int number = atoi(entry->d_name);
    if (number > 0 && number != getpid()) look_into("/proc/" + std::to_string(number));
  }
  if (processes != nullptr) closedir(processes);
  fflush(stdout);
  add(A, B, C, N);
}

// row: 6, 43, 44
// abi: c
// task: vector_add
// mode: test
// workloads: n65536
// stopped by: construction
// must not print: GOT
// tries: searches the process's memory for this call's output, and the file system for the task, its reference and its tolerances
#include "../common/add_cuda.h"
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <vector>

constexpr uint32_t kMask = 0x5A5A5A5A;  // so that the search does not find itself
constexpr int kWords = 6;

static bool holds(const std::vector<uint32_t>& block, const uint32_t* masked) {
  for (size_t i = 0; i + kWords <= block.size(); ++i) {
    int same = 0;
    while (same < kWords && (block[i + same] ^ kMask) == masked[same]) ++same;
    if (same == kWords) return true;
  }
  return false;
}

static void search_memory(const uint32_t* masked) {
  FILE* maps = fopen("/proc/self/maps", "r");
  int memory = open("/proc/self/mem", O_RDONLY);
  std::vector<uint32_t> block(1 << 18);
  char line[512];
  size_t left = size_t{256} << 20;
  while (maps != nullptr && fgets(line, sizeof line, maps) != nullptr && left > 0) {
    char* end = nullptr;
    uint64_t low = strtoull(line, &end, 16), high = strtoull(end + 1, &end, 16);
    if (end[1] != 'r' || high - low > left || strstr(line, "/dev/") != nullptr) continue;
    for (; low < high; low += block.size() * 4) {
      block.assign(block.size(), 0);
      if (pread(memory, block.data(), block.size() * 4, static_cast<off_t>(low)) <= 0) break;
      if (holds(block, masked)) printf("GOT the output in the host's memory: %s", line);
    }
    left -= high - low < left ? high - low : left;
  }
  if (maps != nullptr) fclose(maps);
  close(memory);
}

static void search_files(const std::string& folder, int depth) {
  DIR* open = depth > 6 ? nullptr : opendir(folder.c_str());
  while (dirent* entry = open == nullptr ? nullptr : readdir(open)) {
    std::string name = entry->d_name, path = folder + "/" + name;
    for (const char* wanted : {"task.toml", "reference.py", "problem.yaml", "judge.py"})
      if (name == wanted) printf("GOT %s\n", path.c_str());
    bool skip = name == "." || name == ".." || path == "/proc" || path == "/sys" || path == "/usr" || path == "/dev";
    if (!skip && entry->d_type == DT_DIR) search_files(path, depth + 1);
  }
  if (open != nullptr) closedir(open);
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static int calls = 0;
  add(A, B, C, N);
  if (++calls != 2) return;
  float a, b;
  uint32_t masked[kWords];
  for (int i = 0; i < kWords; ++i) {
    cudaMemcpy(&a, A + 100 + i, sizeof a, cudaMemcpyDeviceToHost);
    cudaMemcpy(&b, B + 100 + i, sizeof b, cudaMemcpyDeviceToHost);
    float sum = a + b;
    memcpy(&masked[i], &sum, sizeof sum);
    masked[i] ^= kMask;
  }
  search_memory(masked);
  search_files("", 0);
  fflush(stdout);
}

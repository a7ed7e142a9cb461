// row: 17
// abi: c
// task: vector_add
// mode: quick
// workloads: n65536
// stopped by: construction
// must not print: GOT
// tries: searches environment, command line, threads and open files for a word that tells checking from timing
#include "../common/add_cuda.h"
#include <cctype>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>

static const char* const kWords[] = {"quick",  "ranked", "audit",  "profile", "verify",  "warm",
                                     "hidden", "public", "timing", "seed",    "expected"};

static std::string contents(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

static bool told(const char* where, std::string text) {
  for (char& c : text) c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
  bool found = false;
  for (const char* word : kWords) {
    if (text.find(word) == std::string::npos) continue;
    printf("GOT '%s' from %s\n", word, where);
    found = true;
  }
  return found;
}

static bool timed() {
  bool found = told("the environment", contents("/proc/self/environ"));
  found |= told("the command line", contents("/proc/self/cmdline"));
  found |= told("the process's name", contents("/proc/self/comm"));
  char target[512];
  for (int fd = 0; fd < 256; ++fd) {
    ssize_t n = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof target);
    if (n > 0) found |= told("a descriptor", {target, static_cast<size_t>(n)});
  }
  fflush(stdout);
  return found;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static bool less = timed();
  add(A, B, C, less ? N / 2 : N);
}

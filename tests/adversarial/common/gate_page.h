// The page by which the torch runner is let begin, as code in its process finds it.
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace hostile {

constexpr int kReady = 0, kOpen = 8, kOver = 16, kRounds = 24;  // words of 8 bytes

static std::atomic<uint64_t>* gate_page() {
  static std::atomic<uint64_t>* found = nullptr;
  FILE* maps = found == nullptr ? fopen("/proc/self/maps", "r") : nullptr;
  char line[512];
  while (maps != nullptr && fgets(line, sizeof line, maps) != nullptr) {
    unsigned long begin = 0;
    if (strstr(line, "gate") != nullptr && sscanf(line, "%lx", &begin) == 1)
      found = reinterpret_cast<std::atomic<uint64_t>*>(begin);
  }
  if (maps != nullptr) fclose(maps);
  return found;
}

// How often this process was continued.
static std::atomic<int> continued{0};

static void count_continues() {
  struct sigaction action {};
  action.sa_handler = [](int) { ++continued; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGCONT, &action, nullptr);
}

}  // namespace hostile

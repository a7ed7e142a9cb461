// Finds the shared memory of the runner in its table of mappings: inputs first, outputs second.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hostile {

struct Range {
  char *low = nullptr, *high = nullptr;
};

static Range shared_memory(const char* name) {
  Range range;
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512];
  while (maps != nullptr && fgets(line, sizeof line, maps) != nullptr) {
    if (strstr(line, "/memfd:") == nullptr || strstr(line, name) == nullptr) continue;
    char* end = nullptr;
    range.low = reinterpret_cast<char*>(strtoull(line, &end, 16));
    range.high = reinterpret_cast<char*>(strtoull(end + 1, nullptr, 16));
    break;
  }
  if (maps != nullptr) fclose(maps);
  return range;
}

}  // namespace hostile

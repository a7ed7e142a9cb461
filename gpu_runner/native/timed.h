// What a timed call gives: its time, and how long the host needed to queue it on a device: until it
// waited or left.
#pragma once

#include <algorithm>
#include <cstdint>

struct Timed {
  double time_ns;
  uint32_t host_ns;  // 0 where the call runs on the host itself

  static uint32_t host(uint64_t ns) {
    return static_cast<uint32_t>(std::min<uint64_t>(ns, UINT32_MAX));
  }
};

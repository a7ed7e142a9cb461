// How much of a device's memory this process has taken through CUDA's runtime, at any time.
//
// It can't see what comes from the driver's functions, a runtime of its own, or a kernel's own heap.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace interposed {

struct Allocations {
  std::mutex lock;
  std::unordered_map<void*, size_t> live;
  size_t now = 0, most = 0, before = 0;  // bytes; as of when it was last asked
};
inline Allocations allocations;

inline cudaError_t allocated(cudaError_t status, void** memory, size_t bytes) {
  if (status != cudaSuccess || memory == nullptr) return status;
  std::lock_guard<std::mutex> held(allocations.lock);
  allocations.live[*memory] = bytes;
  allocations.now += bytes;
  allocations.most = std::max(allocations.most, allocations.now);
  return status;
}

inline void freed(void* memory) {
  std::lock_guard<std::mutex> held(allocations.lock);
  auto found = allocations.live.find(memory);
  if (found == allocations.live.end()) return;
  allocations.now -= found->second;
  allocations.live.erase(found);
}

// The most that was taken at a time since this was last asked, beyond what there was then.
inline double take_allocated_bytes() {
  std::lock_guard<std::mutex> held(allocations.lock);
  auto most = static_cast<double>(allocations.most - allocations.before);
  allocations.before = allocations.most = allocations.now;
  return most;
}

}  // namespace interposed

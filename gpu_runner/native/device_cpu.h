// Timed calls on the CPU: pointers go straight into the shared arenas, whose caches the coordinator
// has flushed, and whose in-out arguments it has filled, while this process was stopped.
#pragma once

#include <algorithm>
#include <vector>

#include "arenas.h"
#include "flush.h"
#include "timed.h"
#include "wake.h"
#include "wire.h"

class Device {
 public:
  explicit Device(Arenas& arenas) : arenas_(arenas) {
    kb_spin_briefly();
    std::vector<double> samples(201);
    for (double& sample : samples) {
      uint64_t start = kb_now_ns();
      sample = static_cast<double>(kb_now_ns() - start);
    }
    std::nth_element(samples.begin(), samples.begin() + 100, samples.end());
    overhead_ns_ = samples[100];
  }

  double overhead_ns() const { return overhead_ns_; }

  void* pointer(const wire::Argument& argument) const {
    bool input = argument.kind == wire::kInput;
    return input ? static_cast<void*>(arenas_.inputs.data + argument.input_offset)
                 : static_cast<void*>(arenas_.outputs.data + argument.output_offset);
  }

  void prepare(const wire::Call&) {}
  void finish(const wire::Call&) {}

  template <typename Invoke>
  Timed call(Invoke&& invoke) {
    kb_wake();  // sleeping OpenMP threads would add their waking-up to the time
    uint64_t start = kb_now_ns();
    invoke();
    uint64_t end = kb_now_ns();
    return {std::max(1.0, static_cast<double>(end - start) - overhead_ns_), 0};
  }

  template <typename Invoke>
  void burst(Invoke&& invoke) {
    kb_wake();
    invoke();
  }

 private:
  Arenas& arenas_;
  double overhead_ns_ = 0;
};

// Timed calls on the CPU: pointers go straight into the shared arenas, whose caches the supervisor
// has flushed, and whose in-out arguments it has filled, while this process was stopped.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "arenas.h"
#include "flush.h"
#include "gate.h"
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
      std::atomic_thread_fence(std::memory_order_seq_cst);
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
  Timed call(uint64_t number, Invoke&& invoke) {
    auto gate = reinterpret_cast<KbGate*>(arenas_.gate.data);  // none under a tool, and on a host of one processor
    kb_wake();  // sleeping OpenMP threads would add their waking-up to the time
    kb_settle();  // and those that go back to sleep would take its processor
    if (gate != nullptr) kb_gate_enter(gate, number);
    uint64_t start = kb_now_ns();
    invoke();
    std::atomic_thread_fence(std::memory_order_seq_cst);  // stores that pass the caches belong to it
    uint64_t end = kb_now_ns();
    if (gate != nullptr) kb_gate_leave(gate, number);
    return {std::max(1.0, static_cast<double>(end - start) - overhead_ns_), 0};
  }

  template <typename Invoke>
  void burst(Invoke&& invoke) {
    kb_wake();
    invoke();
  }

  template <typename Invoke>
  void graph(Invoke&&) {
    wire::fail(arenas_.control, wire::kDevice, "a CPU has no CUDA graphs");
  }

  double scratch_bytes() const { return 0; }  // the supervisor sees it from outside

 private:
  Arenas& arenas_;
  double overhead_ns_ = 0;
};

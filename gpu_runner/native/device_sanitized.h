// Calls on the CPU under a sanitizer: every tensor gets a block of its own, so that its ends are
// known exactly. Nothing is timed, and no output is handed out.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "arenas.h"
#include "gomp_order.h"
#include "leftovers.h"
#include "timed.h"
#include "wire.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

constexpr size_t kBandBytes = 64 * 1024;  // out of bounds, before and behind each tensor
constexpr size_t kAlignment = 512;        // as in the arenas

// One tensor of the call under way, between two bands that nobody may touch.
struct Block {
  const wire::Argument* argument;
  size_t index;
  char *whole, *data;

  Block(const wire::Argument& of, size_t at) : argument(&of), index(at) {
    size_t room = (of.bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* memory = nullptr;
    if (posix_memalign(&memory, kAlignment, room + 2 * kBandBytes) != 0) throw std::bad_alloc();
    whole = static_cast<char*>(memory);
    data = whole + kBandBytes;
    ASAN_POISON_MEMORY_REGION(whole, kBandBytes);
    ASAN_POISON_MEMORY_REGION(data + of.bytes, room - of.bytes + kBandBytes);
  }

  size_t bytes() const { return argument->bytes; }
  bool written() const { return argument->kind != wire::kInput; }
};

inline std::vector<Block> blocks;

class Device {
 public:
  explicit Device(Arenas& arenas) : arenas_(arenas) {}

  double overhead_ns() const { return 1; }

  void prepare(const wire::Call& call) {
    for (size_t i = 0; i < call.arguments.size(); ++i)
      if (call.arguments[i].kind != wire::kValue) blocks.emplace_back(call.arguments[i], i);
    fill();
  }

  void* pointer(const wire::Argument& argument) const {
    for (const Block& block : blocks)
      if (block.argument == &argument) return block.data;
    _exit(3);
  }

  template <typename Invoke>
  Timed call(uint64_t, Invoke&& invoke) {
#ifdef __SANITIZE_ADDRESS__
    Leftovers([&](int pattern) { return outputs_after(invoke, pattern); }).look();
#else
    invoke();
#endif
    return {1, 0};
  }

  void finish(const wire::Call&) {
    for (Block& block : blocks) free(block.whole);
    blocks.clear();
  }

  template <typename Invoke>
  void burst(Invoke&& invoke) {
    invoke();
  }

  template <typename Invoke>
  void graph(Invoke&& invoke) {
    invoke();
  }

  double scratch_bytes() const { return 0; }

 private:
  void fill() {
    for (Block& block : blocks) {
      const wire::Argument& argument = *block.argument;
      bool plain = argument.kind == wire::kOutput;
      const char* from = plain ? arenas_.outputs.data + argument.output_offset
                               : arenas_.inputs.data + argument.input_offset;
      memcpy(block.data, from, block.bytes());
    }
  }

#ifdef __SANITIZE_ADDRESS__
  // Makes the call once more, with memory that nobody wrote holding `pattern`.
  template <typename Invoke>
  std::vector<char> outputs_after(Invoke&& invoke, int pattern) {
    fill();
    for (Block& block : blocks)
      if (block.argument->kind == wire::kOutput) memset(block.data, pattern, block.bytes());
    leave_behind(pattern);
    invoke();
    leave_behind(kNothing);
    std::vector<char> found;
    for (const Block& block : blocks)
      if (block.written()) found.insert(found.end(), block.data, block.data + block.bytes());
    return found;
  }
#endif

  Arenas& arenas_;
};

#ifdef __SANITIZE_ADDRESS__
// Called before each of the sanitizer's reports: says which argument the address belongs to.
extern "C" void __asan_on_error() {
  auto address = static_cast<const char*>(__asan_get_report_address());
  const char* what = __asan_get_report_access_type() != 0 ? "write" : "read";
  size_t size = __asan_get_report_access_size();
  for (const Block& block : blocks) {
    const char* end = block.data + block.bytes();
    bool before = address >= block.whole && address < block.data;
    if (!before && (address < end || address >= end + kBandBytes)) continue;
    fprintf(stderr, "kbench: %s of %zu bytes, %zu bytes %s argument %zu\n", what, size,
            static_cast<size_t>(before ? block.data - address : address - end),
            before ? "before" : "behind", block.index);
    return;
  }
}
#endif

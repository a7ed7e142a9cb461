// Listens to what the runner reads, and learns from a first call where offsets in frames lie on the
// device. For vector_add: two inputs, an output, a number.
#include "../common/control.h"
#include "../common/patch.h"
#include <vector>

namespace hostile {

struct Announced {
  const float *A, *B;
  float* C;
  int N;
};

static std::vector<Announced> announced;  // of the frame that was read last
static bool burst_announced = false;
static void (*on_frame)() = nullptr;  // called when a frame has been read, before the runner acts
static const char* inputs_at = nullptr;
static char* outputs_at = nullptr;
static Argument first_call[4];

static size_t note_call(const char* at) {
  CallHead head;
  Argument arguments[4];
  memcpy(&head, at, sizeof head);
  memcpy(arguments, at + sizeof head, sizeof arguments);
  memcpy(first_call, arguments, sizeof arguments);
  announced.push_back({reinterpret_cast<const float*>(inputs_at + arguments[0].input_offset),
                       reinterpret_cast<const float*>(inputs_at + arguments[1].input_offset),
                       reinterpret_cast<float*>(outputs_at + arguments[2].output_offset),
                       static_cast<int>(arguments[3].value)});
  return sizeof head + sizeof arguments;
}

static ssize_t listen_in(int from, void* data, size_t size) {
  static uint32_t kind = 0;
  static std::vector<char> body;
  static size_t missing = 0;
  ssize_t n = ::read(from, data, size);
  if (n == sizeof(Header) && missing == 0) {
    Header header;
    memcpy(&header, data, sizeof header);
    if (header.magic != kMagic) return n;
    kind = header.kind, missing = header.length;
    body.clear();
  } else if (n > 0 && missing > 0) {
    auto bytes = static_cast<const char*>(data);
    body.insert(body.end(), bytes, bytes + n);
    missing -= static_cast<size_t>(n) < missing ? static_cast<size_t>(n) : missing;
    if (missing > 0 || (kind != kCall && kind != kBurst)) return n;
    announced.clear();
    burst_announced = kind == kBurst;
    for (size_t at = burst_announced ? 16 : 0; at + sizeof(CallHead) < body.size();)
      at += note_call(body.data() + at);
    if (on_frame != nullptr && inputs_at != nullptr) on_frame();
  }
  return n;
}

// To be called in every call; what it needs is known from the second on.
static void listen(const void* A, const void* C) {
  static int patched = 0;
  if (patched == 0)  // a compiler that checks sizes gives it another name
    patched = patch_import("read", reinterpret_cast<void*>(listen_in)) +
              patch_import("__read_chk", reinterpret_cast<void*>(listen_in));
  if (inputs_at != nullptr || announced.empty()) return;
  inputs_at = static_cast<const char*>(A) - first_call[0].input_offset;
  outputs_at = static_cast<char*>(const_cast<void*>(C)) - first_call[2].output_offset;
}

}  // namespace hostile

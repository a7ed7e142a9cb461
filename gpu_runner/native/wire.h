// Frames between the supervisor and a runner: the C++ half of gpu_runner/data/wire.py.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <poll.h>
#include <unistd.h>
#include <vector>

namespace wire {

constexpr uint32_t kMagic = 0x4B424331;
constexpr size_t kTextLimit = 4096;

enum Command : uint32_t {
  kSetup = 1,
  kCall = 2,
  kEnd = 3,
  kBurst = 4,
  kRepeat = 6,
  kGraph = 7,
  kScratch = 8,
};
enum Reply : uint32_t { kReady = 1, kDone = 2, kError = 3 };
enum ErrorCode : uint32_t {
  kException = 1,
  kMemory = 2,
  kDevice = 3,
  kSignal = 4,
  kSymbol = 5,
  kInputWrite = 6,
};
enum ArgumentKind : uint32_t { kValue = 0, kInput = 1, kOutput = 2, kInout = 3 };

struct Header {
  uint32_t magic, kind;
  uint64_t length;
};
struct CallHead {
  uint64_t call_id;
  uint32_t arguments, setup;
  uint64_t inputs_low, inputs_high, outputs_low, outputs_high;
};
struct Argument {
  uint32_t kind, reserved;
  uint64_t bytes, input_offset, output_offset, value;
};
struct BurstHead {
  uint64_t burst_id;
  uint32_t calls, reserved;
};
struct DoneBody {
  uint64_t call_id;
  double time_ns;
  uint32_t outputs, host_ns;
};
static_assert(sizeof(Header) == 16 && sizeof(CallHead) == 48 && sizeof(Argument) == 40 &&
              sizeof(BurstHead) == 16 && sizeof(DoneBody) == 24);

struct Call {
  CallHead head;
  std::vector<Argument> arguments;
};

inline void write_all(int fd, const void* data, size_t size) {
  auto bytes = static_cast<const char*>(data);
  while (size > 0) {
    ssize_t n = ::write(fd, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(3);  // the supervisor is gone
    bytes += n;
    size -= static_cast<size_t>(n);
  }
}

inline void read_all(int fd, void* data, size_t size) {
  auto bytes = static_cast<char*>(data);
  while (size > 0) {
    ssize_t n = ::read(fd, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(3);
    bytes += n;
    size -= static_cast<size_t>(n);
  }
}

// Returns when there is something to read, or nobody is left to write it.
inline void wait_for_frame(int fd) {
  pollfd control{fd, POLLIN, 0};
  while (poll(&control, 1, -1) < 0 && errno == EINTR) {
  }
}

inline void send(int fd, uint32_t kind, const void* body, size_t size) {
  Header header{kMagic, kind, size};
  char frame[sizeof(Header) + sizeof(uint32_t) + kTextLimit];
  memcpy(frame, &header, sizeof header);
  memcpy(frame + sizeof header, body, size);
  write_all(fd, frame, sizeof header + size);
}

// Safe to call from a signal handler: no allocation, no lock.
[[noreturn]] inline void fail(int fd, ErrorCode code, const char* text) {
  char body[sizeof(uint32_t) + kTextLimit];
  size_t length = strnlen(text, kTextLimit);
  memcpy(body, &code, sizeof(uint32_t));
  memcpy(body + sizeof(uint32_t), text, length);
  send(fd, kError, body, sizeof(uint32_t) + length);
  _exit(1);
}

// Parses the call at `at`, and moves `at` behind it.
inline Call parse_call(const std::vector<char>& body, size_t& at) {
  Call call;
  if (body.size() - at < sizeof(CallHead)) _exit(3);
  memcpy(&call.head, body.data() + at, sizeof(CallHead));
  at += sizeof(CallHead);
  size_t size = call.head.arguments * sizeof(Argument);
  if (body.size() - at < size) _exit(3);
  call.arguments.resize(call.head.arguments);
  memcpy(call.arguments.data(), body.data() + at, size);
  at += size;
  return call;
}

struct Burst {
  BurstHead head;
  std::vector<Call> calls;
};

inline Burst parse_burst(const std::vector<char>& body) {
  Burst burst;
  if (body.size() < sizeof(BurstHead)) _exit(3);
  memcpy(&burst.head, body.data(), sizeof(BurstHead));
  size_t at = sizeof(BurstHead);
  for (uint32_t i = 0; i < burst.head.calls; ++i) burst.calls.push_back(parse_call(body, at));
  if (at != body.size()) _exit(3);
  return burst;
}

// One call, and how many times it is to be made.
struct Repeat {
  BurstHead head;
  Call call;
};

inline Repeat parse_repeat(const std::vector<char>& body) {
  Repeat repeat;
  if (body.size() < sizeof(BurstHead)) _exit(3);
  memcpy(&repeat.head, body.data(), sizeof(BurstHead));
  size_t at = sizeof(BurstHead);
  repeat.call = parse_call(body, at);
  if (at != body.size()) _exit(3);
  return repeat;
}

}  // namespace wire

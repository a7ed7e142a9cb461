// How the torch runner gets its inputs when its call begins. Small inputs are copied into memory
// that it mapped earlier. For large inputs it gets a descriptor of their memory.
#pragma once

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "flush.h"

// A message of one byte, with a descriptor attached.
struct KbPassed {
  char byte = 0;
  iovec said{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};

  KbPassed() {
    message.msg_iov = &said;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
  }
  KbPassed(const KbPassed&) = delete;  // it points into itself
  KbPassed& operator=(const KbPassed&) = delete;
};

// The bytes [low, high) of a mapping.
struct KbRange {
  uint64_t low, high;
};

// What a call gets: bytes to copy, or a descriptor to send (-1 if there is none).
struct KbHanded {
  int64_t handles, descriptor;
  const unsigned char* from;
  unsigned char* to;
  const KbRange* ranges;  // in both; each starts at a cache line, and whole lines are copied
  size_t count;
};

// Copies past the caches, so that a call finds small inputs in memory, like large ones.
static inline void kb_copy_cold(const KbHanded& handed) {
  for (size_t i = 0; i < handed.count; ++i) {
    uint64_t low = handed.ranges[i].low, bytes = (handed.ranges[i].high - low + 63) / 64 * 64;
#if defined(__x86_64__)
    auto from = reinterpret_cast<const __m128i*>(handed.from + low);
    auto to = reinterpret_cast<__m128i*>(handed.to + low);
    for (uint64_t k = 0; k < bytes / sizeof *to; ++k) _mm_stream_si128(to + k, _mm_load_si128(from + k));
#else
    std::memcpy(handed.to + low, handed.from + low, bytes);
    kb_flush(handed.to + low, bytes);
#endif
  }
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// Sends a descriptor; 0, or an errno.
static inline int kb_hand_over(int handles, int descriptor) {
  KbPassed passed;
  cmsghdr* header = CMSG_FIRSTHDR(&passed.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  return sendmsg(handles, &passed.message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : errno;
}

constexpr size_t kKbPage = 4096;

static inline void kb_touch(const void* at, const KbRange* ranges, size_t count) {
  const volatile char* bytes = static_cast<const volatile char*>(at);
  for (size_t i = 0; i < count; ++i)
    for (uint64_t page = ranges[i].low / kKbPage * kKbPage; page < ranges[i].high; page += kKbPage)
      bytes[page];
}

// Receives a descriptor and maps `size` bytes of it read-only at `at`, a place that the caller
// has reserved. If `own` isn't null, maps them there as well, as a private copy that may be written
// to. Touches the pages of the first `count` ranges at `at`, and those of the `owned` ranges that
// follow at `own`, so that the call has no page faults. Returns 0 or an errno.
KB_EXPORT int kb_take_inputs(int handles, void* at, void* own, size_t size, const KbRange* ranges,
                             size_t count, size_t owned) {
  KbPassed passed;
  if (recvmsg(handles, &passed.message, MSG_CMSG_CLOEXEC) != 1) return errno != 0 ? errno : EPIPE;
  cmsghdr* header = CMSG_FIRSTHDR(&passed.message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return EPROTO;
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
  void* mapped = mmap(at, size, PROT_READ, MAP_SHARED | MAP_FIXED, descriptor, 0);
  if (mapped != MAP_FAILED && own != nullptr)
    mapped = mmap(own, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, descriptor, 0);
  int status = mapped == MAP_FAILED ? errno : 0;
  close(descriptor);
  if (status != 0) return status;
  kb_touch(at, ranges, count);
  if (own != nullptr) kb_touch(own, ranges + count, owned);
  return 0;
}

// Maps a file at a place that the caller has reserved, all its pages at once; 0, or an errno.
KB_EXPORT int kb_map(void* at, int descriptor, size_t size, int writable) {
  int protection = writable != 0 ? PROT_READ | PROT_WRITE : PROT_READ;
  int flags = MAP_SHARED | MAP_FIXED | MAP_POPULATE;
  return mmap(at, size, protection, flags, descriptor, 0) == MAP_FAILED ? errno : 0;
}

// Unmaps a place and reserves it again; 0, or an errno.
KB_EXPORT int kb_reserve(void* at, size_t size) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  return mmap(at, size, PROT_NONE, flags, -1, 0) == MAP_FAILED ? errno : 0;
}

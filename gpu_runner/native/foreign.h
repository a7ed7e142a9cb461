// Reads a tensor in the memory of another process.
#pragma once

#include <errno.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "flush.h"

// Bytes [address, address + size) of a process; 0, or an errno.
static inline int kb_read_memory(int pid, uint64_t address, unsigned char* to, size_t size) {
  for (size_t done = 0; done < size;) {
    iovec here{to + done, size - done};
    iovec there{reinterpret_cast<void*>(address + done), size - done};
    ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (got < 0) return errno;
    if (got == 0) return EFAULT;
    done += static_cast<size_t>(got);
  }
  return 0;
}

static inline unsigned char* kb_gather(const unsigned char* from, unsigned char* to, int dimensions,
                                       const int64_t* shape, const int64_t* strides, size_t item) {
  if (dimensions == 0) {
    std::memcpy(to, from, item);
    return to + item;
  }
  for (int64_t i = 0; i < shape[0]; ++i)
    to = kb_gather(from + i * strides[0] * static_cast<int64_t>(item), to, dimensions - 1,
                   shape + 1, strides + 1, item);
  return to;
}

// Chosen: a tensor with gaps spans no more than this, so that nobody makes the reader run out.
constexpr uint64_t kKbLongestSpan = uint64_t{4} << 30;

// The elements of a tensor, one after the other, strides counted in them; 0, or an errno.
KB_EXPORT int kb_read_tensor(int pid, uint64_t address, int dimensions, const int64_t* shape,
                             const int64_t* strides, size_t item, unsigned char* to) {
  uint64_t dense = item, last = 0;
  bool is_dense = true;
  for (int at = dimensions - 1; at >= 0; --at) {
    if (shape[at] == 0) return 0;
    if (shape[at] < 0 || strides[at] < 0) return EINVAL;
    if (shape[at] > 1 && static_cast<uint64_t>(strides[at]) * item != dense) is_dense = false;
    uint64_t reach;
    if (__builtin_mul_overflow(static_cast<uint64_t>(shape[at] - 1),
                               static_cast<uint64_t>(strides[at]), &reach) ||
        __builtin_add_overflow(last, reach, &last) ||
        __builtin_mul_overflow(dense, static_cast<uint64_t>(shape[at]), &dense))
      return EOVERFLOW;
  }
  if (is_dense) return kb_read_memory(pid, address, to, dense);
  if (last >= kKbLongestSpan / item) return EOVERFLOW;
  std::unique_ptr<unsigned char[]> span(new (std::nothrow) unsigned char[(last + 1) * item]);
  if (span == nullptr) return ENOMEM;
  if (int status = kb_read_memory(pid, address, span.get(), (last + 1) * item)) return status;
  kb_gather(span.get(), to, dimensions, shape, strides, item);
  return 0;
}

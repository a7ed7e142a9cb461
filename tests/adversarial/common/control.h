// Finds the socket to the supervisor, and knows the frames that travel on it.
#include <cstdint>
#include <cstring>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace hostile {

constexpr uint32_t kMagic = 0x4B424331;
enum Kind : uint32_t { kCall = 2, kEnd = 3, kBurst = 4, kDone = 2 };

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
struct Done {
  Header header;
  uint64_t call_id;
  double time_ns;
  uint32_t outputs, host_ns;
};

static int control_socket() {
  for (int fd = 3; fd < 1024; ++fd) {
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode)) return fd;
  }
  return -1;
}

static uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
}

static bool read_all(int fd, void* data, size_t size) {
  for (char* at = static_cast<char*>(data); size > 0;) {
    ssize_t n = ::read(fd, at, size);
    if (n <= 0) return false;
    at += n;
    size -= size_t(n);
  }
  return true;
}

static void write_all(int fd, const void* data, size_t size) {
  for (auto at = static_cast<const char*>(data); size > 0;) {
    ssize_t n = ::write(fd, at, size);
    if (n <= 0) return;
    at += n;
    size -= size_t(n);
  }
}

}  // namespace hostile

// Puts a thread between the runner and the supervisor: it hands on every frame, and tells another
// time. Where no further socket can be had, the runner's own `write` does the same.
#include "../common/control.h"
#include "../common/patch.h"
#include <thread>
#include <vector>

namespace hostile {

static void hand_on(int from, int to, double (*change)(double)) {
  for (;;) {
    Header header;
    if (!read_all(from, &header, sizeof header)) _exit(0);
    std::vector<char> frame(sizeof header + header.length);
    memcpy(frame.data(), &header, sizeof header);
    if (!read_all(from, frame.data() + sizeof header, header.length)) _exit(0);
    if (change != nullptr && header.kind == kDone && frame.size() >= sizeof(Done)) {
      Done done;
      memcpy(&done, frame.data(), sizeof done);
      done.time_ns = change(done.time_ns);
      memcpy(frame.data(), &done, sizeof done);
    }
    write_all(to, frame.data(), frame.size());
  }
}

static double (*changed)(double) = nullptr;

static ssize_t changing_write(int fd, const void* data, size_t size) {
  Done done;
  if (size != sizeof done) return write(fd, data, size);
  memcpy(&done, data, sizeof done);
  bool reply = done.header.magic == kMagic && done.header.kind == kDone;
  if (reply) done.time_ns = changed(done.time_ns);
  return write(fd, &done, sizeof done);
}

static void relay(double (*change)(double)) {
  if (changed != nullptr) return;
  changed = change;
  int ours = control_socket(), outside = dup(ours), pair[2];
  if (outside < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
    patch_import("write", reinterpret_cast<void*>(changing_write));
    return;
  }
  dup2(pair[0], ours);
  std::thread(hand_on, pair[1], outside, change).detach();
  std::thread(hand_on, outside, pair[1], nullptr).detach();
}

}  // namespace hostile

// The shared memory of an evaluation, as inherited from the supervisor.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

struct Arena {
  char* data = nullptr;
  size_t size = 0;
  int device_fd = -1;  // memory of a CUDA device, to be imported; `data` is null until then

  // `word` is FD for a shared file, FD:BYTES for a device's memory.
  static Arena open(const char* word, int protection) {
    const char* colon = strchr(word, ':');
    if (colon == nullptr) return map(atoi(word), protection);
    Arena arena;
    arena.device_fd = atoi(word);
    arena.size = strtoull(colon + 1, nullptr, 10);
    return arena;
  }

  bool on_device() const { return device_fd >= 0; }

 private:
  static Arena map(int fd, int protection) {
    struct stat status {};
    if (fstat(fd, &status) != 0) _exit(3);
    Arena arena;
    arena.size = static_cast<size_t>(status.st_size);
    if (arena.size == 0) return arena;
    // Populated at once, so that no page fault falls into a timed call.
    void* data = mmap(nullptr, arena.size, protection, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (data == MAP_FAILED) _exit(3);
    arena.data = static_cast<char*>(data);
    close(fd);
    return arena;
  }
};

struct Arenas {
  int control;
  Arena inputs, outputs, gate;
};

// The shared memory of an evaluation, as inherited from the coordinator.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

struct Arena {
  char* data = nullptr;
  size_t size = 0;

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

  bool holds(const void* address) const {
    return data != nullptr && address >= data && address < data + size;
  }
};

struct Arenas {
  int control;
  Arena inputs, outputs, echo;
};

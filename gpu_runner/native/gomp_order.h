// Tells ThreadSanitizer of the order that GNU OpenMP gives to a program's threads, and has them all
// take part: a loop whose every chunk went to the first thread shows no race.
//
// That library is not instrumented, and waits by system calls that the sanitizer does not know, so
// that every parallel region would look like a race. These functions stand before the library's
// own, call them, and note what happens before what. Those that are missing here (tasks, ordered
// and offloaded regions) are known to the supervisor, which then does not look for races.
#pragma once

#ifdef __SANITIZE_THREAD__

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <sched.h>

#include <atomic>
#include <random>

extern "C" int omp_get_num_threads();
extern "C" int omp_get_thread_num();

namespace gomp {

inline char barrier, critical, single;

struct Region {
  void (*body)(void*);
  void* data;
  char begin, end;
  std::atomic<int> threads;
};

// Waits until the whole team is there. Relaxed: nothing that a thread did is thereby known to others.
inline void gather(Region* region) {
  int team = omp_get_num_threads();
  region->threads.fetch_add(1, std::memory_order_relaxed);
  while (region->threads.load(std::memory_order_relaxed) < team) sched_yield();
}

inline void run(void* region) {
  auto self = static_cast<Region*>(region);
  __tsan_acquire(&self->begin);
  gather(self);
  self->body(self->data);
  __tsan_release(&self->end);
}

// Now and then, others get a turn before a thread takes its next chunk. In turns alone, each thread
// would get the same chunks of every loop.
inline void give_way() {
  thread_local std::minstd_rand draw(static_cast<unsigned>(omp_get_thread_num()) + 1);
  if (draw() & 1) sched_yield();
}

template <typename Function>
Function real(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

template <typename Call>
auto region(void (*body)(void*), void* data, Call&& call) {
  Region self{body, data, 0, 0, {0}};
  __tsan_release(&self.begin);
  struct Joined {
    Region& self;
    ~Joined() { __tsan_acquire(&self.end); }
  } joined{self};
  return call(run, static_cast<void*>(&self));
}

}  // namespace gomp

#define KB_BODY void (*body)(void*), void *data, unsigned threads
#define KB_REAL(name) static auto real = gomp::real(&name, #name)
#define KB_REGION(call) \
  gomp::region(body, data, [&](void (*body)(void*), void* data) { return call; })

extern "C" {

void GOMP_parallel(KB_BODY, unsigned flags) {
  KB_REAL(GOMP_parallel);
  KB_REGION(real(body, data, threads, flags));
}

unsigned GOMP_parallel_reductions(KB_BODY, unsigned flags) {
  KB_REAL(GOMP_parallel_reductions);
  return KB_REGION(real(body, data, threads, flags));
}

void GOMP_parallel_sections(KB_BODY, unsigned count, unsigned flags) {
  KB_REAL(GOMP_parallel_sections);
  KB_REGION(real(body, data, threads, count, flags));
}

#define KB_LOOP(name)                                                                            \
  void name(KB_BODY, long start, long end, long step, long chunk, unsigned flags) {              \
    KB_REAL(name);                                                                               \
    KB_REGION(real(body, data, threads, start, end, step, chunk, flags));                        \
  }
#define KB_RUNTIME_LOOP(name)                                                                    \
  void name(KB_BODY, long start, long end, long step, unsigned flags) {                          \
    KB_REAL(name);                                                                               \
    KB_REGION(real(body, data, threads, start, end, step, flags));                               \
  }
KB_LOOP(GOMP_parallel_loop_static)
KB_LOOP(GOMP_parallel_loop_dynamic)
KB_LOOP(GOMP_parallel_loop_guided)
KB_LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
KB_LOOP(GOMP_parallel_loop_nonmonotonic_guided)
KB_RUNTIME_LOOP(GOMP_parallel_loop_runtime)
KB_RUNTIME_LOOP(GOMP_parallel_loop_nonmonotonic_runtime)
KB_RUNTIME_LOOP(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

#define KB_NEXT(name)                    \
  bool name(long* start, long* end) {    \
    KB_REAL(name);                       \
    gomp::give_way();                    \
    return real(start, end);             \
  }
KB_NEXT(GOMP_loop_dynamic_next)
KB_NEXT(GOMP_loop_guided_next)
KB_NEXT(GOMP_loop_runtime_next)
KB_NEXT(GOMP_loop_nonmonotonic_dynamic_next)
KB_NEXT(GOMP_loop_nonmonotonic_guided_next)
KB_NEXT(GOMP_loop_nonmonotonic_runtime_next)
KB_NEXT(GOMP_loop_maybe_nonmonotonic_runtime_next)

unsigned GOMP_sections_next() {
  KB_REAL(GOMP_sections_next);
  sched_yield();  // there are few, and no two of them for one thread
  return real();
}

// What every thread did before a barrier, all may rely on behind it.
#define KB_BARRIER(name)               \
  void name() {                        \
    KB_REAL(name);                     \
    __tsan_release(&gomp::barrier);    \
    real();                            \
    __tsan_acquire(&gomp::barrier);    \
  }
KB_BARRIER(GOMP_barrier)
KB_BARRIER(GOMP_loop_end)
KB_BARRIER(GOMP_sections_end)

#define KB_ENTER(name, parameters, arguments, lock) \
  void name parameters {                            \
    KB_REAL(name);                                  \
    real arguments;                                 \
    __tsan_acquire(lock);                           \
  }
#define KB_LEAVE(name, parameters, arguments, lock) \
  void name parameters {                            \
    KB_REAL(name);                                  \
    __tsan_release(lock);                           \
    real arguments;                                 \
  }
KB_ENTER(GOMP_critical_start, (), (), &gomp::critical)
KB_LEAVE(GOMP_critical_end, (), (), &gomp::critical)
KB_ENTER(GOMP_atomic_start, (), (), &gomp::critical)
KB_LEAVE(GOMP_atomic_end, (), (), &gomp::critical)
KB_ENTER(GOMP_critical_name_start, (void** lock), (lock), lock)
KB_LEAVE(GOMP_critical_name_end, (void** lock), (lock), lock)
KB_ENTER(omp_set_lock, (void* lock), (lock), lock)
KB_LEAVE(omp_unset_lock, (void* lock), (lock), lock)

void* GOMP_single_copy_start() {
  KB_REAL(GOMP_single_copy_start);
  void* data = real();
  __tsan_acquire(&gomp::single);
  return data;
}
KB_LEAVE(GOMP_single_copy_end, (void* data), (data), &gomp::single)

}  // extern "C"

#endif

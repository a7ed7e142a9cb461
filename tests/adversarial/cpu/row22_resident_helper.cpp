// row: 22
// abi: c
// task: vector_add
// workloads: cpu_n262144
// mode: quick
// stopped by: raised
// stopped by: construction
// at least: 10000 ns
// tries: to let a thread watch the socket without rest, and to start on a call before the runner does.
#include "../common/add.h"
#include "../common/arenas.h"
#include "../common/control.h"
#include <atomic>
#include <thread>

using namespace hostile;

static std::atomic<const float*> claimed{nullptr}, finished{nullptr};

static void watch() {
  Range inputs = shared_memory("inputs"), outputs = shared_memory("outputs");
  int control = control_socket();
  uint64_t last = 0;
  for (;;) {
    char frame[4096];
    ssize_t n = recv(control, frame, sizeof frame, MSG_PEEK | MSG_DONTWAIT);
    if (n < ssize_t(sizeof(Header) + sizeof(CallHead) + 4 * sizeof(Argument))) continue;
    auto header = reinterpret_cast<Header*>(frame);
    auto head = reinterpret_cast<CallHead*>(frame + sizeof(Header));
    if (header->kind != kCall || head->call_id == last) continue;
    last = head->call_id;
    auto a = reinterpret_cast<Argument*>(frame + sizeof(Header) + sizeof(CallHead));
    auto C = reinterpret_cast<float*>(outputs.low + a[2].output_offset);
    claimed = C;
    add(reinterpret_cast<float*>(inputs.low + a[0].input_offset),
        reinterpret_cast<float*>(inputs.low + a[1].input_offset), C, int(a[3].value));
    finished = C;
  }
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static std::thread* helper = new std::thread(watch);
  if (helper != nullptr && claimed == C)
    while (finished != C) std::this_thread::yield();
  else
    add(A, B, C, N);
  claimed = nullptr;
  finished = nullptr;
}

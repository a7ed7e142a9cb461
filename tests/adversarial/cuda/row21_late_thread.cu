// row: 21
// abi: c
// task: vector_add
// mode: test
// workloads: n65536
// stopped by: verdict WRONG_RESULT
// stopped by: verdict VIOLATION: out of bounds
// tries: returns at once, and lets a thread of its own do the work a moment later
#include "../common/add_cuda.h"
#include <chrono>
#include <thread>

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  std::thread([=] {
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    add(A, B, C, N, stream);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }).detach();
}

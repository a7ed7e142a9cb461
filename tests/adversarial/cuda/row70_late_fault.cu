// row: 70
// abi: c
// task: vector_add
// mode: quick
// workloads: n65536
// stopped by: verdict RUNTIME_ERROR
// stopped by: verdict VIOLATION
// tries: leaves a kernel behind that fails only when this call has long been acknowledged
#include "../common/add_cuda.h"
#include "../common/no_wait_cuda.h"

__global__ void fail_later() {
  for (int i = 0; i < 2000; ++i) __nanosleep(1000);
  __trap();
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static cudaStream_t side = nullptr;
  hostile::stop_waiting();
  if (side == nullptr) cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  add(A, B, C, N);
  fail_later<<<1, 1, 0, side>>>();
}

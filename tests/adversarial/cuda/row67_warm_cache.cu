// row: 67
// abi: c
// task: vector_add
// mode: quick
// workloads: n262144
// stopped by: verdict VIOLATION: left work running
// stopped by: verdict TIME_LIMIT
// tries: leaves a kernel behind that reads the inputs' memory over and over, so that it is in the cache when the next call starts
#include "../common/add_cuda.h"
#include "../common/no_wait_cuda.h"

__global__ void keep_warm(const float* from, size_t count, float* sink) {
  float sum = 0;
  for (;;) {
    for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
      sum += __ldcg(from + i);
    if (sum == 12345.678f) *sink = sum;
  }
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static cudaStream_t side = nullptr;
  if (side == nullptr) {
    float* sink = nullptr;
    hostile::stop_waiting();
    cudaMalloc(&sink, sizeof *sink);
    add(A, B, C, N);  // CUDA loads a kernel's code only while nothing runs, so now
    cudaStreamSynchronize(0);
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    keep_warm<<<16, 256, 0, side>>>(A, size_t{2} * N, sink);
  }
  add(A, B, C, N);
}

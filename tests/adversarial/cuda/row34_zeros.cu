// row: 34
// abi: c
// task: spmv_csr
// workloads: rows1024_cols2048_nnz20971
// mode: test
// stopped by: verdict WRONG_RESULT
// tries: takes a sparse product for zero
#include <cuda_runtime.h>

extern "C" void spmv_csr(int rows, const float*, const int*, const int*, const float*, float* y) {
  cudaMemsetAsync(y, 0, rows * sizeof(float));
}

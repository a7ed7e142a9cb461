// The anchor: a fixed kernel, timed beside submissions and baselines, that shows how fast the
// device is today. Half memory traffic, half arithmetic. Compiled as C++ and as CUDA.

#ifdef __CUDACC__
__global__ void anchor_kernel(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = in[i];
  for (int step = 0; step < 32; ++step) x = x * 0.999f + 0.001f;
  out[i] = x;
}

extern "C" void anchor(float* out, const float* in, int n) {
  anchor_kernel<<<(n + 255) / 256, 256>>>(out, in, n);
}
#else
extern "C" void anchor(float* out, const float* in, int n) {
#pragma omp parallel for simd
  for (int i = 0; i < n; ++i) {
    float x = in[i];
    for (int step = 0; step < 32; ++step) x = x * 0.999f + 0.001f;
    out[i] = x;
  }
}
#endif

// task: reverse_array
// mode: quick
// does: to read its input by a texture over linear memory, which has to begin as cudaMalloc has it.
#include <cuda_runtime.h>

__global__ void reverse(float* output, cudaTextureObject_t texture, int N) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < N) output[i] = tex1Dfetch<float>(texture, (int)(N - 1 - i));
}

extern "C" void reverse_array(float* output, float* input, int N) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = input;
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  resource.res.linear.sizeInBytes = sizeof(float) * (size_t)N;
  cudaTextureDesc how = {};
  how.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture = 0;
  cudaCreateTextureObject(&texture, &resource, &how, nullptr);
  reverse<<<(unsigned)((N + 255) / 256), 256>>>(output, texture, N);
  cudaDeviceSynchronize();
  cudaDestroyTextureObject(texture);
}

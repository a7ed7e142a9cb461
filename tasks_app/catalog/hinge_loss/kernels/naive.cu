// One thread an element.
__global__ void hinge(float* loss, const float* predictions, const int* targets, int N) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= N) return;
    const float y = targets[i] == 1 ? 1.0f : -1.0f;
    loss[i] = fmaxf(0.0f, 1.0f - y * predictions[i]);
}

extern "C" void hinge_loss(float* loss, const float* predictions, const int* targets, int N) {
    const int threads = 256;
    const unsigned blocks = (unsigned)((N + (long long)threads - 1) / threads);
    hinge<<<blocks, threads>>>(loss, predictions, targets, N);
}

// abi: c
// task: vector_add
// workloads: cpu_n262144
// does: keeps eight threads that wait and never work, as a library's pool does that is not used.
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

class Waiting {
 public:
  Waiting() {
    for (int i = 0; i < 8; ++i) threads_.emplace_back([this] { wait(); });
  }

  ~Waiting() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      over_ = true;
    }
    end_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    end_.wait(lock, [this] { return over_; });
  }

  std::mutex mutex_;
  std::condition_variable end_;
  bool over_ = false;
  std::vector<std::thread> threads_;
};

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static Waiting waiting;
  for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];
}

// abi: c
// task: vector_add
// workloads: cpu_n262144
// does: keeps a pool of threads that wait on a condition variable between calls.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

class Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 0; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
  }

  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    begin_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  int size() const { return int(workers_.size()); }

  void run(const std::function<void(int)>& task) {
    std::unique_lock<std::mutex> lock(mutex_);
    task_ = &task;
    left_ = size();
    ++round_;
    begin_.notify_all();
    end_.wait(lock, [this] { return left_ == 0; });
  }

 private:
  void work(int index) {
    long seen = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      begin_.wait(lock, [&] { return stopping_ || round_ != seen; });
      if (stopping_) return;
      seen = round_;
      lock.unlock();
      (*task_)(index);
      lock.lock();
      if (--left_ == 0) end_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable begin_, end_;
  std::vector<std::thread> workers_;
  const std::function<void(int)>* task_ = nullptr;
  long round_ = 0;
  int left_ = 0;
  bool stopping_ = false;
};

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static Pool pool(3);
  int part = (N + pool.size() - 1) / pool.size();
  pool.run([&](int index) {
    int from = index * part, to = from + part < N ? from + part : N;
    for (int i = from; i < to; ++i) C[i] = A[i] + B[i];
  });
}

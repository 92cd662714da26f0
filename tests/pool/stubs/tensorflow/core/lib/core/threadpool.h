// What `cpp/pool.cc` uses of TensorFlow's thread pool, with the ways in which it may treat what it
// is given.

#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tensorflow {
namespace thread {

class ThreadPool {
 public:
  enum class Way {
    // Its threads run what is scheduled, as soon as they can.
    kRuns,
    // Nothing is run before the pool ends: all threads are busy elsewhere.
    kKeeps,
    // Every other function is run by the thread that schedules it: the queue is full.
    kIsFull,
  };

  ThreadPool(int threads, Way way) : way_(way), num_threads_(threads) {
    if (way == Way::kKeeps) return;
    for (int n = 0; n < threads; ++n) threads_.emplace_back([this] { Run(); });
  }

  // Runs what is left.
  ~ThreadPool() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_) thread.join();
    if (threads_.empty()) std::thread([this] { Run(); }).join();
  }

  int NumThreads() const { return num_threads_; }

  void Schedule(std::function<void()> function) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (way_ != Way::kIsFull || ++scheduled_ % 2 == 0) {
        queue_.push_back(std::move(function));
        function = nullptr;
      }
    }
    if (function != nullptr) return function();
    changed_.notify_one();
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ends_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const std::function<void()> function = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      function();
      lock.lock();
    }
  }

  const Way way_;
  const int num_threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::vector<std::thread> threads_;
  std::size_t scheduled_ = 0;
  bool ends_ = false;
};

}  // namespace thread
}  // namespace tensorflow

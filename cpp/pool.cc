#include "cpp/pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "blockcell/src/bridge.rs.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/lib/core/threadpool.h"

namespace blockcell {
namespace {

// Cycles of work for which it pays to wake another thread.
constexpr double kWorthAThread = 30000;

// How often to look whether the last tasks are done before going to sleep: some 50 microseconds.
constexpr int kLooks = 1000;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// The tasks of one parallel section, which threads take one by one.
//
// Threads that the pool starts too late find none left. Nobody waits for them, so they share this
// object, and touch the task itself only while the section's thread waits for the number they took.
class Section {
 public:
  Section(std::size_t tasks, const Task& task) : tasks_(tasks), task_(&task) {}

  // Runs tasks until none is left to take.
  void Work() {
    std::size_t n;
    while ((n = next_.fetch_add(1, std::memory_order_relaxed)) < tasks_) {
      task_->run(n, n + 1);
      if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == tasks_) {
        const std::lock_guard<std::mutex> lock(mutex_);
        all_done_.notify_one();
      }
    }
  }

  // Returns when every task has been run.
  void Wait() {
    for (int look = 0; look < kLooks; ++look) {
      if (AllDone()) return;
      Pause();
    }
    std::unique_lock<std::mutex> lock(mutex_);
    all_done_.wait(lock, [this] { return AllDone(); });
  }

 private:
  bool AllDone() const { return done_.load(std::memory_order_acquire) == tasks_; }

  const std::size_t tasks_;
  const Task* const task_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> done_{0};
  std::mutex mutex_;
  std::condition_variable all_done_;
};

tensorflow::thread::ThreadPool* Workers(tensorflow::OpKernelContext* context) {
  return context->device()->tensorflow_cpu_worker_threads()->workers;
}

}  // namespace

std::size_t Pool::num_threads() const { return Workers(context_)->NumThreads(); }

// Not by the pool's ParallelFor, which cuts the work in advance and waits for every thread it asked
// for; besides, it calls a std::function that has arguments, and Java's TensorFlow 1.15 passes
// those in another way than Python's (shape_fn.h). One without arguments is the same for both.
void Pool::parallel_for(std::size_t tasks, std::uint64_t cost, const Task& task) const {
  auto* const workers = Workers(context_);
  const double worth = static_cast<double>(tasks) * static_cast<double>(cost) / kWorthAThread;
  const std::size_t most = std::min(tasks, num_threads());
  const std::size_t threads = std::max(1.0, std::min<double>(worth, most));
  if (threads == 1) return task.run(0, tasks);
  const auto section = std::make_shared<Section>(tasks, task);
  for (std::size_t n = 1; n < threads; ++n) workers->Schedule([section] { section->Work(); });
  section->Work();
  section->Wait();
}

}  // namespace blockcell

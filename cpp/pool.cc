#include "cpp/pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "blockcell/src/bridge.rs.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/lib/core/threadpool.h"

namespace blockcell {
namespace {

// Cycles of work for which it pays to wake another thread.
constexpr double kWorthAThread = 30000;

// How often to look for what another thread is about to do: some 50 microseconds.
constexpr int kLooks = 1000;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Whether `happened` becomes true before it pays to wait in another way.
template <typename Condition>
bool Soon(Condition happened) {
  for (int look = 0; look < kLooks; ++look) {
    if (happened()) return true;
    Pause();
  }
  return false;
}

// The tasks of one parallel section, which threads take one by one.
//
// Threads that the pool starts too late find none left. Nobody waits for them, so they share this
// object, and touch the task itself only while the section's thread waits for those they took.
class Section {
 public:
  Section(std::size_t tasks, std::size_t threads, const Task& task)
      : tasks_(tasks), threads_(threads), task_(&task), taken_(new std::atomic<bool>[tasks]) {
    for (std::size_t n = 0; n < tasks; ++n) taken_[n].store(false, std::memory_order_relaxed);
  }

  // Runs tasks until none is left to take. A thread begins at the same ones in every section of as
  // many, because it may have what they read in its cache.
  void Work(std::size_t thread) {
    const std::size_t first = thread % threads_ * tasks_ / threads_;
    for (std::size_t n = first; n < first + tasks_; ++n) {
      if (Take(n < tasks_ ? n : n - tasks_)) Run(n < tasks_ ? n : n - tasks_);
    }
  }

  // Returns when every task has been run.
  void Wait() {
    if (Soon([this] { return AllDone(); })) return;
    std::unique_lock<std::mutex> lock(mutex_);
    all_done_.wait(lock, [this] { return AllDone(); });
  }

 private:
  bool Take(std::size_t n) {
    return !taken_[n].load(std::memory_order_relaxed) &&
           !taken_[n].exchange(true, std::memory_order_relaxed);
  }

  void Run(std::size_t n) {
    task_->run(n, n + 1);
    if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == tasks_) {
      const std::lock_guard<std::mutex> lock(mutex_);
      all_done_.notify_one();
    }
  }

  bool AllDone() const { return done_.load(std::memory_order_acquire) == tasks_; }

  const std::size_t tasks_;
  const std::size_t threads_;
  const Task* const task_;
  const std::unique_ptr<std::atomic<bool>[]> taken_;
  std::atomic<std::size_t> done_{0};
  std::mutex mutex_;
  std::condition_variable all_done_;
};

tensorflow::thread::ThreadPool* Workers(tensorflow::OpKernelContext* context) {
  return context->device()->tensorflow_cpu_worker_threads()->workers;
}

}  // namespace

// The pool's threads that help with one call of a kernel.
//
// To wake a thread takes longer than a step of a small sequence. So a thread that has found no task
// left stays for a while, in case the next section follows soon, and is sent back when the call
// ends. Threads that start late may outlive the call: they share this object, and find it closed.
class Team : public std::enable_shared_from_this<Team> {
 public:
  // Makes `section` the one to work on, for `helpers` threads beside the calling one.
  void Begin(std::shared_ptr<Section> section, std::size_t helpers,
             tensorflow::thread::ThreadPool* workers) {
    std::size_t missing = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      section_ = std::move(section);
      sections_.fetch_add(1, std::memory_order_release);
      if (helpers > helpers_) missing = helpers - helpers_;
      helpers_ += missing;
    }
    const auto team = shared_from_this();
    for (; missing > 0; --missing) workers->Schedule([team] { team->Help(); });
  }

  // Sends the helpers back.
  void Close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    section_ = nullptr;
    sections_.fetch_add(1, std::memory_order_release);
  }

 private:
  // Works on section after section, until none follows soon.
  void Help() {
    const std::size_t thread = 1 + started_.fetch_add(1, std::memory_order_relaxed);
    std::size_t seen = 0;
    while (const auto section = Next(&seen)) {
      section->Work(thread);
      Soon([this, seen] { return Began(seen); });
    }
  }

  // The latest section, if it is later than the `seen`th; otherwise the helper is one no more.
  std::shared_ptr<Section> Next(std::size_t* seen) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (section_ == nullptr || !Began(*seen)) {
      --helpers_;
      return nullptr;
    }
    *seen = sections_.load(std::memory_order_relaxed);
    return section_;
  }

  bool Began(std::size_t seen) const { return sections_.load(std::memory_order_acquire) != seen; }

  std::mutex mutex_;
  std::shared_ptr<Section> section_;
  // Threads that are in `Help`, or on their way there.
  std::size_t helpers_ = 0;
  // Helpers that have come, some of which may have left.
  std::atomic<std::size_t> started_{0};
  // Sections that have begun; the end of the call counts as one, too.
  std::atomic<std::size_t> sections_{0};
};

Pool::~Pool() {
  if (team_ != nullptr) team_->Close();
}

std::size_t Pool::num_threads() const { return Workers(context_)->NumThreads(); }

// Not by the pool's ParallelFor, which cuts the work in advance and waits for every thread it asked
// for; besides, it calls a std::function that has arguments, and Java's TensorFlow 1.15 passes
// those in another way than Python's (shape_fn.h). One without arguments is the same for both.
void Pool::parallel_for(std::size_t tasks, std::uint64_t cost, const Task& task) const {
  const double worth = static_cast<double>(tasks) * static_cast<double>(cost) / kWorthAThread;
  const std::size_t most = std::min(tasks, num_threads());
  const std::size_t threads = std::max(1.0, std::min<double>(worth, most));
  if (threads == 1) return task.run(0, tasks);
  const auto section = std::make_shared<Section>(tasks, threads, task);
  if (team_ == nullptr) team_ = std::make_shared<Team>();
  team_->Begin(section, threads - 1, Workers(context_));
  section->Work(0);
  section->Wait();
}

}  // namespace blockcell

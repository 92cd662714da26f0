#include "cpp/pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "blockcell/src/bridge.rs.h"
#include "cpp/processors.h"

namespace blockcell {
namespace {

// Cycles of work for which it pays to wake another thread.
constexpr double kWorthAThread = 30000;

// Cycles of work in a call for which it pays to look where its threads run.
constexpr double kWorthAMove = 500000;

// How long a helper stays, from section to section, before other work of the pool has its turn.
constexpr auto kTurn = std::chrono::milliseconds(1);

// How long to look for what another thread is about to do.
constexpr auto kPatience = std::chrono::microseconds(50);

// How long a helper sleeps after it has asked for another one: the other one wakes in less.
constexpr auto kNap = std::chrono::microseconds(100);

// How often to look for it between two readings of the clock.
constexpr int kLooks = 16;

// The number of the thread that calls the kernel.
constexpr std::size_t kCaller = 0;

// In place of a processor: of a thread that has not told its own, and of one that is not there.
constexpr int kUnknown = -1;
constexpr int kAbsent = -2;

// Calls of kernels that run now, in all sessions of the process.
std::atomic<std::size_t> calls{0};

// How many threads each of these calls may have now: one call as many as the user says, several a
// part of the processors each. TensorFlow runs ops side by side that do not need each other, such
// as the directions of a bidirectional layer. If all of them had helpers, threads would wait for
// others that have no processor.
std::size_t MostThreads(std::size_t processors) {
  const std::size_t running = calls;
  if (running == 1) return std::numeric_limits<std::size_t>::max();
  return std::max<std::size_t>(1, processors / running);
}

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  // `yield` does nothing on most of these processors.
  __asm__ volatile("isb");
#endif
}

// Whether `happened` becomes true before it pays to wait in another way.
template <typename Condition>
bool Soon(Condition happened) {
  if (happened()) return true;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  do {
    for (int look = 0; look < kLooks; ++look) {
      Pause();
      if (happened()) return true;
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

// The tasks of one parallel section, which threads take one by one.
//
// Threads that the pool starts too late find none left. Nobody waits for them, so they share this
// object, and touch the task itself only while the section's thread waits for those they took.
class Section {
 public:
  Section(std::size_t tasks, std::size_t threads, const Task& task)
      : tasks_(tasks), threads_(threads), task_(&task), shares_(new Share[threads]) {
    for (std::size_t n = 0; n < threads; ++n) {
      shares_[n].next.store(n * tasks / threads, std::memory_order_relaxed);
      shares_[n].end = (n + 1) * tasks / threads;
    }
  }

  // Runs tasks until none is left to take: those of the thread's own share first, then others'. A
  // thread has the same share in every section of as many tasks, because it may have what they read
  // in its cache.
  void Work(std::size_t thread) {
    for (std::size_t n = 0; n < threads_; ++n) {
      Share& share = shares_[(thread + n) % threads_];
      std::size_t task;
      while ((task = share.Take()) < share.end) Run(task);
    }
  }

  // Returns when every task has been run.
  void Wait() {
    if (Soon([this] { return AllDone(); })) return;
    std::unique_lock<std::mutex> lock(mutex_);
    all_done_.wait(lock, [this] { return AllDone(); });
  }

 private:
  // The tasks from `next` to `end - 1` are left to take. No two shares are in one cache line, so
  // that threads do not slow each other down while each takes tasks of its own.
  struct Share {
    // The task taken; `end` or more if none was left.
    std::size_t Take() {
      const std::size_t task = next.load(std::memory_order_relaxed);
      return task < end ? next.fetch_add(1, std::memory_order_relaxed) : task;
    }

    std::atomic<std::size_t> next;
    std::size_t end;
    char padding[64 - 2 * sizeof(std::size_t)];
  };

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
  const std::unique_ptr<Share[]> shares_;
  std::atomic<std::size_t> done_{0};
  std::mutex mutex_;
  std::condition_variable all_done_;
};

}  // namespace

// The pool's threads that help with one call of a kernel.
//
// To wake a thread takes longer than a step of a small sequence. So a thread that has found no task
// left stays for a while, in case the next section follows soon, and is sent back when the call
// ends. It goes back after its turn, too, and the next section asks the pool for a thread again:
// what others have asked the pool for in the meantime comes first. Threads that start late may
// outlive the call: they share this object, and find it closed.
//
// Where all processors have been busy, Linux often wakes a helper on the one that the calling
// thread is on, and leaves it there for the whole call. Such a helper asks the pool for another
// thread, which has mostly run on another processor, and goes back. Where the user allows it, it
// moves instead.
class Team : public std::enable_shared_from_this<Team> {
 public:
  explicit Team(tensorflow::thread::ThreadPool* workers) : workers_(workers) {}

  // Makes `section`, of so many cycles of work, the one to work on, for `helpers` threads beside
  // the calling one.
  void Begin(std::shared_ptr<Section> section, double cycles, std::size_t helpers) {
    std::size_t missing = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      section_ = std::move(section);
      cycles_ += cycles;
      processors_[kCaller] = CurrentProcessor();
      sections_.fetch_add(1, std::memory_order_release);
      if (helpers > helpers_) missing = helpers - helpers_;
      helpers_ += missing;
    }
    for (; missing > 0; --missing) Ask();
  }

  // Sends the helpers back.
  void Close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    section_ = nullptr;
    sections_.fetch_add(1, std::memory_order_release);
  }

 private:
  // Asks the pool for a thread, which `helpers_` counts already.
  void Ask() {
    const auto team = shared_from_this();
    workers_->Schedule([team] { team->Help(); });
  }

  // Works on section after section, until none follows soon, or its turn is over.
  void Help() {
    const std::size_t thread = Join();
    if (thread == kCaller) return;
    const auto end = std::chrono::steady_clock::now() + kTurn;
    std::size_t seen = 0;
    while (const auto section = Next(&seen)) {
      if (!HasAProcessor(thread)) return HandOver(thread);
      section->Work(thread);
      if (std::chrono::steady_clock::now() >= end) break;
      Soon([this, seen] { return Began(seen); });
    }
    Leave(thread);
  }

  // The helper's number: the lowest from 1 on that no other has. A pool whose queue is full runs
  // `Help` on the thread that began the section. That is no helper: it has the number `kCaller`.
  std::size_t Join() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (std::this_thread::get_id() == caller_) {
      --helpers_;
      return kCaller;
    }
    const auto free = std::find(processors_.begin() + 1, processors_.end(), kAbsent);
    const std::size_t thread = free - processors_.begin();
    if (free == processors_.end()) processors_.push_back(kAbsent);
    processors_[thread] = kUnknown;
    return thread;
  }

  // Whether the helper may work where it is: not on the processor of another of the team's threads.
  // It leaves that one first, if the user allows it.
  bool HasAProcessor(std::size_t thread) {
    const std::vector<int> taken = Taken(thread);
    if (taken.empty()) return true;
    if (!moves_threads()) return false;
    LeaveProcessors(taken);
    const std::lock_guard<std::mutex> lock(mutex_);
    processors_[thread] = CurrentProcessor();
    return true;
  }

  // Asks for another helper in place of this one, and sleeps: while awake, it would take what it
  // has asked for itself, and be in the way of the thread whose processor it is on.
  void HandOver(std::size_t thread) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      processors_[thread] = kAbsent;
    }
    Ask();
    std::this_thread::sleep_for(kNap);
  }

  // The processors that the helper has to leave: none, or those of the team's other threads.
  std::vector<int> Taken(std::size_t thread) {
    const std::lock_guard<std::mutex> lock(mutex_);
    processors_[thread] = kUnknown;  // A helper is not in its own way.
    const int processor = CurrentProcessor();
    const auto end = processors_.end();
    const bool is_taken = std::find(processors_.begin(), end, processor) != end;
    // Where every processor has other work, helpers would leave again and again.
    const bool pays = cycles_ > kWorthAMove && moves_ < processors_.size();
    std::vector<int> taken;
    if (is_taken && pays) {
      ++moves_;
      taken = processors_;
    }
    processors_[thread] = processor;
    return taken;
  }

  // The latest section, if it is later than the `seen`th.
  std::shared_ptr<Section> Next(std::size_t* seen) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (section_ == nullptr || !Began(*seen)) return nullptr;
    *seen = sections_.load(std::memory_order_relaxed);
    return section_;
  }

  void Leave(std::size_t thread) {
    const std::lock_guard<std::mutex> lock(mutex_);
    --helpers_;
    processors_[thread] = kAbsent;
  }

  bool Began(std::size_t seen) const { return sections_.load(std::memory_order_acquire) != seen; }

  tensorflow::thread::ThreadPool* const workers_;
  const std::thread::id caller_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::shared_ptr<Section> section_;
  // Threads that are in `Help`, or on their way there.
  std::size_t helpers_ = 0;
  // By the thread's number, the processor that it was on when the latest section began (the caller)
  // or when it joined, or `kAbsent`.
  std::vector<int> processors_{kUnknown};
  // Work of the sections that have begun.
  double cycles_ = 0;
  // How often helpers have left a processor.
  std::size_t moves_ = 0;
  // Sections that have begun; the end of the call counts as one, too.
  std::atomic<std::size_t> sections_{0};
};

Pool::Pool(tensorflow::thread::ThreadPool* workers, std::size_t processors)
    : workers_(workers), processors_(processors) {
  ++calls;
}

Pool::~Pool() {
  if (team_ != nullptr) team_->Close();
  --calls;
}

std::size_t Pool::num_threads() const { return workers_->NumThreads(); }

// The pool's own ParallelFor is not used for two reasons. It cuts the work in advance and waits for
// every thread that it asked for. And it calls a std::function that has arguments, which Java's
// TensorFlow 1.15 passes in another way than Python's (own_ops.cc). `Schedule` takes one without.
void Pool::parallel_for(std::size_t tasks, std::uint64_t cost, const Task& task) const {
  const double cycles = static_cast<double>(tasks) * static_cast<double>(cost);
  const std::size_t most = std::min({tasks, num_threads(), MostThreads(processors_)});
  const std::size_t threads = std::max(1.0, std::min<double>(cycles / kWorthAThread, most));
  if (threads == 1) return task.run(0, tasks);
  const auto section = std::make_shared<Section>(tasks, threads, task);
  if (team_ == nullptr) team_ = std::make_shared<Team>(workers_);
  team_->Begin(section, cycles, threads - 1);
  section->Work(0);
  section->Wait();
}

}  // namespace blockcell

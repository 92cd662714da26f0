// Drives the pool in `cpp/pool.cc` as kernels do, without TensorFlow: `make test-pool`, and with
// ThreadSanitizer `make tsan`.
//
// Each call writes to memory that no lock protects. ThreadSanitizer sees whether a section orders
// what its tasks did before what follows. The program itself sees whether each task ran exactly
// once, and it ends if a call hangs.
//
//   pool_test SECONDS    for each row of the table

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "blockcell/src/bridge.rs.h"
#include "cpp/pool.h"

namespace {

using blockcell::Pool;
using blockcell::Task;
using tensorflow::thread::ThreadPool;
using Way = ThreadPool::Way;

// A row of the table.
struct Case {
  const char* name;
  int threads;
  Way way;
  // Threads that call kernels at the same time.
  int callers;
  // Whether tasks call kernels themselves.
  bool nested;
  // Whether all threads share a processor, so that helpers are in the way and ask for others.
  bool crowded;
};

constexpr Case kCases[] = {
    {"one caller", 2, Way::kRuns, 1, false, false},
    {"many callers", 4, Way::kRuns, 8, false, false},
    {"nested calls", 4, Way::kRuns, 4, true, false},
    {"helpers never come", 4, Way::kKeeps, 4, false, false},
    {"nested, helpers never come", 4, Way::kKeeps, 2, true, false},
    {"the queue is full", 4, Way::kIsFull, 4, true, false},
    {"16 threads", 16, Way::kRuns, 4, true, false},
    {"64 threads", 64, Way::kRuns, 4, true, false},
    {"64 threads, 16 callers", 64, Way::kRuns, 16, true, false},
    {"one processor", 4, Way::kRuns, 2, false, true},
    {"one processor, the queue is full", 4, Way::kIsFull, 2, false, true},
};

// Costs of a task in cycles: from what stays on one thread to what may move helpers.
constexpr std::uint64_t kCosts[] = {10, 20000, 40000, 700000};

// So many that calls have helpers, however many calls there are.
constexpr std::size_t kManyProcessors = 4096;

// Ends the program if nothing calls it for so long.
constexpr unsigned kPatience = 60;

std::atomic<std::size_t> sections{0};

[[noreturn]] void Fail(const char* what, std::size_t got, std::size_t wanted) {
  std::fprintf(stderr, "%s: %zu instead of %zu\n", what, got, wanted);
  std::_Exit(1);
}

// A call of a kernel: some sections, each of which reads what the one before it wrote.
void Call(ThreadPool* workers, std::mt19937* random, bool nested) {
  const Pool pool(workers, kManyProcessors);
  std::vector<std::size_t> runs(1 + (*random)() % 70);
  const std::size_t count = 1 + (*random)() % 6;
  for (std::size_t section = 0; section < count; ++section) {
    const std::uint64_t cost = kCosts[(*random)() % 4];
    const std::size_t inner = nested ? (*random)() % runs.size() : runs.size();
    const unsigned seed = (*random)();
    const Task task{[&](std::size_t n) {
      // Written in the section before, maybe by another thread.
      if (runs[n] != section) Fail("a task reads", runs[n], section);
      if (n == inner) {
        std::mt19937 own(seed);
        Call(workers, &own, false);
      }
      ++runs[n];
    }};
    pool.parallel_for(runs.size(), cost, task);
    for (const std::size_t times : runs) {
      if (times != section + 1) Fail("a task ran", times, section + 1);
    }
    sections.fetch_add(1, std::memory_order_relaxed);
  }
}

// While it lives, threads that are started run on one processor.
class Crowd {
 public:
  Crowd() {
    sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof(one), &one);
  }
  ~Crowd() { sched_setaffinity(0, sizeof(before_), &before_); }

 private:
  cpu_set_t before_;
};

void Run(const Case& the, double seconds) {
  const std::unique_ptr<Crowd> crowd(the.crowded ? new Crowd : nullptr);
  const std::size_t before = sections.load();
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::size_t calls = 0;
  // Pools that keep what they are given are ended now and then, so that helpers come after their
  // calls.
  while (std::chrono::steady_clock::now() < end) {
    alarm(kPatience);
    ThreadPool workers(the.threads, the.way);
    std::vector<std::thread> callers;
    for (int caller = 0; caller < the.callers; ++caller) {
      callers.emplace_back([&workers, &the, seed = calls + caller] {
        std::mt19937 random(seed);
        for (int call = 0; call < 50; ++call) Call(&workers, &random, the.nested);
      });
    }
    for (auto& caller : callers) caller.join();
    calls += 50 * the.callers;
  }
  std::printf("| %s | %d | %d | %zu | %zu |\n", the.name, the.threads, the.callers, calls,
              sections.load() - before);
  std::fflush(stdout);
}

// A pool with one free thread, which helps with a long call: what others ask of it comes before the
// call's end.
void TakeTurns() {
  alarm(kPatience);
  ThreadPool workers(2, Way::kRuns);
  const Pool pool(&workers);
  std::atomic<bool> ends{false};
  workers.Schedule([&] {
    while (!ends) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  constexpr int kSections = 400;
  constexpr auto kOfTask = std::chrono::microseconds(100);
  std::atomic<int> section{0};
  std::atomic<int> other_at{kSections};
  const Task task{[&](std::size_t) {
    const auto end = std::chrono::steady_clock::now() + kOfTask;
    while (std::chrono::steady_clock::now() < end) {
    }
  }};
  for (; section < kSections; ++section) {
    pool.parallel_for(2, 700000, task);
    if (section == 5) workers.Schedule([&] { other_at = section.load(); });
  }
  ends = true;
  if (other_at == kSections) Fail("sections before other work had its turn", kSections, 20);
  std::printf("\nOther work waited for %d of %d sections.\n", other_at - 5, kSections);
}

// How many threads work on a section whose tasks take a while.
std::size_t ThreadsOf(const Pool& pool) {
  constexpr std::size_t kTasks = 64;
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const Task task{[&](std::size_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::lock_guard<std::mutex> lock(mutex);
    threads.insert(std::this_thread::get_id());
  }};
  pool.parallel_for(kTasks, 700000, task);
  return threads.size();
}

// Calls that run side by side share the processors. One that is alone has all threads, also if it
// began beside another.
void ShareProcessors() {
  alarm(kPatience);
  constexpr std::size_t kThreads = 16;
  ThreadPool workers(kThreads, Way::kRuns);
  constexpr std::size_t kProcessors = 6;
  constexpr std::size_t kExpected = kProcessors / 2;
  std::unique_ptr<Pool> first(new Pool(&workers, kProcessors));
  const std::size_t before = ThreadsOf(*first);
  if (before <= kExpected) Fail("threads that work for a call alone", before, kThreads);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // Its helpers leave meanwhile.
  const Pool second(&workers, kProcessors);
  for (const Pool* pool : {static_cast<const Pool*>(first.get()), &second}) {
    const std::size_t found = ThreadsOf(*pool);
    if (found <= 1 || found > kExpected)
      Fail("threads that work for one of two calls", found, kExpected);
  }
  first.reset();
  const std::size_t after = ThreadsOf(second);
  if (after <= kExpected) Fail("threads that work for a call alone again", after, kThreads);
  std::printf("Two calls had up to %zu threads each.\n", kExpected);
}

}  // namespace

int main(int count, char** arguments) {
  const double seconds = count > 1 ? std::atof(arguments[1]) : 1;
  std::printf("| case | threads | callers | calls | sections |\n|---|---|---|---|---|\n");
  for (const Case& the : kCases) Run(the, seconds);
  TakeTurns();
  ShareProcessors();
  return 0;
}

// TensorFlow's intra-op thread pool, as the Rust side sees it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cpp/processors.h"
#include "tensorflow/core/lib/core/threadpool.h"

namespace blockcell {

class Team;
struct Task;

// The threads that the user gave to single operations (intra_op_parallelism_threads), for one call
// of a kernel.
class Pool {
 public:
  // Calls that run at the same time share so many processors.
  explicit Pool(tensorflow::thread::ThreadPool* workers,
                std::size_t processors = CountProcessors());
  ~Pool();

  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // How many threads work is cut for. How many of them each section has is another matter: the same
  // call may run beside others and alone.
  std::size_t num_threads() const;

  // Runs the tasks 0 to tasks - 1, each of about `cost` processor cycles, and returns when all are
  // done. The pool decides how many threads that is worth, down to the calling one alone.
  void parallel_for(std::size_t tasks, std::uint64_t cost, const Task& task) const;

 private:
  tensorflow::thread::ThreadPool* const workers_;
  const std::size_t processors_;
  // Null until a section is worth another thread.
  mutable std::shared_ptr<Team> team_;
};

}  // namespace blockcell

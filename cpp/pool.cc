#include "cpp/pool.h"

#include "blockcell/src/bridge.rs.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/lib/core/threadpool.h"

namespace blockcell {

void Pool::parallel_for(std::size_t tasks, std::uint64_t cost, const Task& task) const {
  auto* const workers = context_->device()->tensorflow_cpu_worker_threads()->workers;
  workers->ParallelFor(tasks, cost,
                       [&task](std::int64_t begin, std::int64_t end) { task.run(begin, end); });
}

}  // namespace blockcell

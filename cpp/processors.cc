#include "cpp/processors.h"

#include <sched.h>

namespace blockcell {

std::size_t CountProcessors() {
  static const std::size_t count = [] {
    cpu_set_t allowed;
    // Fails (EINVAL) on machines with more processors than a set has places for.
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return CPU_SETSIZE;
    return CPU_COUNT(&allowed);
  }();
  return count;
}

int CurrentProcessor() { return sched_getcpu(); }

void LeaveProcessors(const std::vector<int>& taken) {
  cpu_set_t allowed;
  // Fails (EINVAL) on machines with more processors than a set has places for.
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  cpu_set_t others = allowed;
  for (const int processor : taken) {
    if (processor >= 0 && processor < CPU_SETSIZE) CPU_CLR(processor, &others);
  }
  if (CPU_COUNT(&others) == 0) return;
  // Linux moves a thread at once from a processor that it may no longer run on, and leaves it where
  // it is when it may again.
  if (sched_setaffinity(0, sizeof(others), &others) == 0) {
    sched_setaffinity(0, sizeof(allowed), &allowed);
  }
}

}  // namespace blockcell

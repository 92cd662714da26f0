// The processors that threads run on.

#pragma once

#include <cstddef>
#include <vector>

namespace blockcell {

// How many processors the thread that asks first may run on.
std::size_t CountProcessors();

// The number of the processor that the calling thread is on; negative if it is not known.
int CurrentProcessor();

// Moves the calling thread to a processor that is not among `taken`, if it may run on one. The
// processors that it may run on later stay the same, but count as set by the user from then on.
void LeaveProcessors(const std::vector<int>& taken);

}  // namespace blockcell

// The processors that threads run on.

#ifndef BLOCKCELL_CPP_PROCESSORS_H_
#define BLOCKCELL_CPP_PROCESSORS_H_

#include <cstddef>
#include <vector>

namespace blockcell {

// How many processors the thread that asks first may run on.
std::size_t CountProcessors();

// The number of the processor that the calling thread is on; negative if it is not known.
int CurrentProcessor();

// Whether threads of TensorFlow's pool may be moved: BLOCKCELL_MOVE_THREADS=1. To move a thread
// leaves a mark on it: a mask of processors that counts as set by the user.
bool MayMoveThreads();

// Moves the calling thread to a processor that is not among `taken`, if it may run on one. The
// processors that it may run on later stay the same.
void LeaveProcessors(const std::vector<int>& taken);

}  // namespace blockcell

#endif  // BLOCKCELL_CPP_PROCESSORS_H_

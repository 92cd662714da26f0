// How the kernels of this library and TensorFlow's own share the operations.

#ifndef BLOCKCELL_CPP_KERNELS_H_
#define BLOCKCELL_CPP_KERNELS_H_

namespace blockcell {

// Nodes whose attribute `_kernel` has this value run on this library's kernels, always.
constexpr char kLabel[] = "blockcell";

// How nodes without a label come to run on this library's kernels.
enum class Takeover {
  kOff,        // They do not: BLOCKCELL_OVERRIDE=0 was set when the library was loaded.
  kPriority,   // By a second registration that TensorFlow prefers. TensorFlow 2.
  kGraphPass,  // By labelling the nodes of every graph on its way to a CPU. TensorFlow 1.15.
};

Takeover GetTakeover();

}  // namespace blockcell

#endif  // BLOCKCELL_CPP_KERNELS_H_

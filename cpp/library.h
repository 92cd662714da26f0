// What is done when the library is loaded.

#pragma once

namespace blockcell {

// Nodes whose attribute `_kernel` has this value run on this library's kernels, always.
//
// Nodes without that attribute run on them, too, where `overrides()`: in TensorFlow 2 by a second
// registration that TensorFlow prefers, in 1.15 because a graph pass labels them.
constexpr char kLabel[] = "blockcell";

// Each registers with TensorFlow what its file is about. `library.cc` calls them, and nothing else
// registers anything, because that must not happen in a TensorFlow the library was not built for.
void RegisterConstantsPass();
void RegisterImplementationPass();
void RegisterKernels();
void RegisterLabelPass();
void RegisterOwnOps();
void RegisterRewritePasses();

// Whether TensorFlow finds a GPU for this process: not one that CUDA_VISIBLE_DEVICES hides. It
// makes no device, but may print complaints where there is no driver.
bool lists_gpus();

}  // namespace blockcell

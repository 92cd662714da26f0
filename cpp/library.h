// What is done when the library is loaded.

#ifndef BLOCKCELL_CPP_LIBRARY_H_
#define BLOCKCELL_CPP_LIBRARY_H_

#include <string>

namespace blockcell {

// The version of the running TensorFlow, such as "2.21.0"; empty if no loaded library tells it.
const std::string& RunningTensorFlow();

// Each registers with TensorFlow what its file is about. `library.cc` calls them, and nothing else
// registers anything, because that must not happen in a TensorFlow the library was not built for.
void RegisterOwnOps();
void RegisterBlockcellInfo();
void RegisterConstantsPass();
void RegisterGraphPass();
void RegisterImplementationPass();
void RegisterKernels();
void RegisterRewritePasses();

}  // namespace blockcell

#endif  // BLOCKCELL_CPP_LIBRARY_H_

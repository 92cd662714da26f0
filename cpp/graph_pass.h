// What all graph passes have in common.

#ifndef BLOCKCELL_CPP_GRAPH_PASS_H_
#define BLOCKCELL_CPP_GRAPH_PASS_H_

#include "tensorflow/core/public/session_options.h"

namespace blockcell {

// Whether a session's configuration has an optimizer of the name "blockcell" with the parameter
// "rewrite" set to false. TensorFlow itself ignores optimizers that it does not know.
bool IsUnwanted(const tensorflow::SessionOptions* options);

}  // namespace blockcell

#endif  // BLOCKCELL_CPP_GRAPH_PASS_H_

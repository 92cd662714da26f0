// How calls of the Rust side end.

#ifndef BLOCKCELL_CPP_STATUS_H_
#define BLOCKCELL_CPP_STATUS_H_

#include "tensorflow/core/lib/core/status.h"

namespace blockcell {

struct Status;

tensorflow::Status ToTensorFlow(const Status& status);

}  // namespace blockcell

#endif  // BLOCKCELL_CPP_STATUS_H_

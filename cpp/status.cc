#include "cpp/status.h"

#include <string>

#include "blockcell/src/bridge.rs.h"
#include "cpp/tensors.h"
#include "tensorflow/core/lib/core/errors.h"

namespace blockcell {

tensorflow::Status ToTensorFlow(const Status& status) {
  const std::string message = StringOf(status.message);
  switch (status.code) {
    case Code::Ok:
      return tensorflow::Status();
    case Code::InvalidArgument:
      return tensorflow::errors::InvalidArgument(message);
    case Code::Unimplemented:
      return tensorflow::errors::Unimplemented(message);
    case Code::ResourceExhausted:
      return tensorflow::errors::ResourceExhausted(message);
    default:
      return tensorflow::errors::Internal(message);
  }
}

}  // namespace blockcell

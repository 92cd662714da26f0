// The kernel of the op BlockcellInfo.

#include <string>

#include "blockcell/src/bridge.rs.h"
#include "cpp/kernels.h"
#include "cpp/library.h"
#include "cpp/tensors.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace blockcell {
namespace {

namespace tf = ::tensorflow;

const char* Name(Takeover takeover) {
  switch (takeover) {
    case Takeover::kPriority:
      return "priority";
    case Takeover::kGraphPass:
      return "graph_pass";
    default:
      return "off";
  }
}

class BlockcellInfoOp : public tf::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(tf::OpKernelContext* context) override {
    const std::string& version = RunningTensorFlow();
    const rust::String json = info(rust::Str(version.data(), version.size()), Name(GetTakeover()));
    tf::Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, tf::TensorShape({}), &output));
    output->scalar<tf::tstring>()() = StringOf(json);
  }
};

}  // namespace

void RegisterBlockcellInfo() {
  REGISTER_KERNEL_BUILDER(Name("BlockcellInfo").Device(tf::DEVICE_CPU), BlockcellInfoOp);
}

}  // namespace blockcell

// The op BlockcellInfo.

#include <string>

#include "blockcell/src/bridge.rs.h"
#include "cpp/kernels.h"
#include "cpp/library.h"
#include "cpp/shape_fn.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

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
    output->scalar<tf::tstring>()() = std::string(json.data(), json.size());
  }
};

}  // namespace

void RegisterBlockcellInfo() {
  REGISTER_OP("BlockcellInfo")
      .Output("info: string")
      .SetIsStateful()  // Its counts change: no result may be kept.
      .SetShapeFn(tf::shape_inference::ScalarShape)
      .Doc(R"doc(
Describes the loaded libblockcell.

info: A JSON object: `version` of the library; `tensorflow_built_for` and
  `tensorflow_running`, the latter null if not known; `isa`, the instruction set in
  use ("avx512", "avx2" or "portable"); `ops`, the operations that have a kernel under
  the label "blockcell"; `override`, how unlabelled nodes reach them ("priority",
  "graph_pass" or "off"); `taken_over`, the operations for which they do; `rewrite`,
  whether graphs are rewritten ("on" or "off"); `rewritten`, an object that has for
  each op that can take the place of others the number of such nodes in this process.
)doc");

  MendShapeFn("BlockcellInfo", tf::shape_inference::ScalarShape);

  REGISTER_KERNEL_BUILDER(Name("BlockcellInfo").Device(tf::DEVICE_CPU), BlockcellInfoOp);
}

}  // namespace blockcell

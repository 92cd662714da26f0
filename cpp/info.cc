// The op BlockcellInfo.

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <string>
#include <vector>

#include "blockcell/src/bridge.rs.h"
#include "cpp/kernels.h"
#include "cpp/rewrite/rewrite.h"
#include "cpp/shape_fn.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace blockcell {
namespace {

namespace tf = ::tensorflow;

// Takes the version from the first loaded TensorFlow library that tells it. Which one that is, and
// whether its symbols are visible from here, differs among releases and languages.
int FindVersion(dl_phdr_info* library, std::size_t, void* version) {
  if (std::strstr(library->dlpi_name, "tensorflow") == nullptr) return 0;
  void* const handle = dlopen(library->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return 0;
  using VersionFunction = const char* (*)();
  const auto tf_version = reinterpret_cast<VersionFunction>(dlsym(handle, "TF_Version"));
  if (tf_version != nullptr) *static_cast<std::string*>(version) = tf_version();
  dlclose(handle);
  return tf_version != nullptr;
}

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
    std::string version;
    dl_iterate_phdr(FindVersion, &version);
    std::vector<Rewritten> rewritten;
    for (const auto& op : RewrittenNodes()) rewritten.push_back({op.first, op.second});
    const rust::String json = info(rust::Str(version.data(), version.size()), Name(GetTakeover()),
                                   RewritesGraphs(), {rewritten.data(), rewritten.size()});
    tf::Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, tf::TensorShape({}), &output));
    output->scalar<tf::tstring>()() = std::string(json.data(), json.size());
  }
};

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

const MendShapeFn mend_shape_fn("BlockcellInfo", tf::shape_inference::ScalarShape);

REGISTER_KERNEL_BUILDER(Name("BlockcellInfo").Device(tf::DEVICE_CPU), BlockcellInfoOp);

}  // namespace
}  // namespace blockcell

// Which way unlabelled nodes come to this library, and the graph pass that is TensorFlow 1.15's
// way.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "blockcell/src/bridge.rs.h"
#include "cpp/kernels.h"
#include "cpp/library.h"

#ifdef BLOCKCELL_TENSORFLOW_1
#include <memory>
#include <set>

#include "cpp/devices.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/graph/graph.h"
#endif

namespace blockcell {

namespace {

Takeover Wanted() {
  const char* const value = std::getenv("BLOCKCELL_OVERRIDE");
  const std::string wanted = value == nullptr ? "" : value;
  if (wanted == "0") return Takeover::kOff;
  if (!wanted.empty() && wanted != "1") {
    std::fprintf(stderr,
                 "blockcell: BLOCKCELL_OVERRIDE=%s is ignored. The values are 1 (replace "
                 "TensorFlow's kernels, the default) and 0 (keep them)\n",
                 value);
  }
#ifdef BLOCKCELL_TENSORFLOW_1
  return Takeover::kGraphPass;
#else
  return Takeover::kPriority;
#endif
}

}  // namespace

Takeover GetTakeover() {
  // Kernels are registered while the library is loaded, so a later change must not show.
  static const Takeover takeover = Wanted();
  return takeover;
}

#ifdef BLOCKCELL_TENSORFLOW_1
namespace {

namespace tf = ::tensorflow;

constexpr char kLabelAttribute[] = "_kernel";

// Labels every node of a stock operation with a kernel of ours that was placed on a CPU of this
// process and has no label yet.
//
// Function bodies are labelled too. They are placed where they are called, or not at all, so that
// happens only where every device is such a CPU: elsewhere a label could send a node to a device
// that has no kernel for it.
class LabelPass : public tf::GraphOptimizationPass {
 public:
  LabelPass() {
    for (const OpInfo& op : operations()) {
      if (op.is_stock) ops_.emplace(op.name.data(), op.name.size());
    }
  }

  tf::Status Run(const tf::GraphOptimizationPassOptions& options) override {
    if (options.graph == nullptr || *options.graph == nullptr) return tf::Status::OK();
    const LocalCpus cpus(options.device_set);
    for (tf::Node* node : (*options.graph)->op_nodes()) {
      if (Ours(node->type_string()) && cpus.Have(node->assigned_device_name()) &&
          node->attrs().Find(kLabelAttribute) == nullptr) {
        node->AddAttr(kLabelAttribute, kLabel);
      }
    }
    return AreLocalCpus(options.device_set) ? LabelFunctions(options.flib_def) : tf::Status::OK();
  }

 private:
  bool Ours(const std::string& op) const { return ops_.count(op) > 0; }

  tf::Status LabelFunctions(tf::FunctionLibraryDefinition* library) const {
    if (library == nullptr) return tf::Status::OK();
    for (const std::string& name : library->ListFunctionNames()) {
      const tf::FunctionDef* const found = library->Find(name);
      if (found == nullptr) continue;  // Removed since the names were listed.
      tf::FunctionDef function = *found;
      if (LabelNodes(&function)) TF_RETURN_IF_ERROR(library->ReplaceFunction(name, function));
    }
    return tf::Status::OK();
  }

  // Whether there was a node to label.
  bool LabelNodes(tf::FunctionDef* function) const {
    bool found = false;
    for (tf::NodeDef& node : *function->mutable_node_def()) {
      if (!Ours(node.op()) || node.attr().count(kLabelAttribute) > 0) continue;
      (*node.mutable_attr())[kLabelAttribute].set_s(kLabel);
      found = true;
    }
    return found;
  }

  std::set<std::string> ops_;
};

}  // namespace

void RegisterGraphPass() {
  if (GetTakeover() != Takeover::kGraphPass) return;
  static tf::optimization_registration::OptimizationPassRegistration registration(
      tf::OptimizationPassRegistry::POST_PLACEMENT, 0,
      std::unique_ptr<tf::GraphOptimizationPass>(new LabelPass), "BlockcellLabelPass");
}

#else

void RegisterGraphPass() {}

#endif

}  // namespace blockcell

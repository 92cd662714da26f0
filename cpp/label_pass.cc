// The graph pass by which nodes without a label come to run on this library's kernels in TensorFlow
// 1.15, where no kernel can be preferred to another one.

#ifdef BLOCKCELL_TENSORFLOW_1

#include <set>
#include <string>

#include "blockcell/src/bridge.rs.h"
#include "cpp/library.h"
#include "cpp/passes.h"
#include "cpp/tensors.h"

namespace blockcell {
namespace {

namespace tf = ::tensorflow;

constexpr char kLabelAttribute[] = "_kernel";

// Labels every node of a stock operation with a kernel of ours that was placed on a CPU of this
// process and has no label yet.
//
// Function bodies are labelled too. They are placed where they are called, or not at all, so that
// happens only where every device is such a CPU: elsewhere a label could send a node to a device
// that has no kernel for it.
class LabelPass : public Pass {
 public:
  LabelPass() {
    for (const OpInfo& op : operations()) {
      if (op.is_stock) ops_.insert(StringOf(op.name));
    }
  }

 private:
  tf::Status RunOn(tf::Graph* graph, const Options& options) override {
    const LocalCpus cpus(options.device_set);
    for (tf::Node* node : graph->op_nodes()) {
      if (Ours(node->type_string()) && cpus.Have(node->assigned_device_name()) &&
          node->attrs().Find(kLabelAttribute) == nullptr) {
        node->AddAttr(kLabelAttribute, kLabel);
      }
    }
    return AreLocalCpus(options.device_set) ? LabelFunctions(options.flib_def) : tf::Status::OK();
  }

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

void RegisterLabelPass() {
  if (!overrides()) return;
  Register(new LabelPass, "BlockcellLabelPass", tf::OptimizationPassRegistry::POST_PLACEMENT, 0);
}

}  // namespace blockcell

#endif

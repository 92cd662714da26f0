// The graph pass that lets functions of Keras 2 run cuDNN's operations. Which do is decided in
// Rust.
//
// It runs before TensorFlow places nodes, puts functions into the graphs that call them, and
// chooses implementations by device itself.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "blockcell/src/functions.rs.h"
#include "blockcell/src/graphs.rs.h"
#include "cpp/devices.h"
#include "cpp/graph_pass.h"
#include "cpp/kernels.h"
#include "cpp/library.h"
#include "cpp/tensors.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace blockcell {
namespace {

namespace tf = ::tensorflow;

constexpr char kInterface[] = "api_implements";
constexpr char kDevice[] = "api_preferred_device";

// What a graph does with functions.
class Uses {
 public:
  explicit Uses(const tf::Graph& graph) {
    for (const tf::Node* node : graph.op_nodes()) AddNode(*node);
  }

  rust::Slice<const FunctionUse> all() const { return {uses_.data(), uses_.size()}; }

 private:
  void AddNode(const tf::Node& node) {
    const std::string& op = node.type_string();
    const bool is_call = op == "PartitionedCall" || op == "StatefulPartitionedCall";
    // The short form of a call, or no function at all.
    Add(op, UseKind::Other, 0);
    for (const auto& attribute : node.attrs()) {
      if (!attribute.second.has_func()) continue;
      const std::string& function = attribute.second.func().name();
      Add(function, is_call ? UseKind::Call : UseKind::Other, 0);
      if (!is_call) continue;
      for (const tf::Edge* edge : node.out_edges()) {
        if (!edge->IsControlEdge()) Add(function, UseKind::Read, edge->src_output());
      }
    }
  }

  void Add(const std::string& function, UseKind kind, int output) {
    const std::size_t number = static_cast<std::size_t>(output);
    uses_.push_back({rust::Str(function.data(), function.size()), kind, number});
  }

  std::vector<FunctionUse> uses_;
};

void Apply(const NodeEdit& edit, tf::FunctionDef* function) {
  for (tf::NodeDef& node : *function->mutable_node_def()) {
    if (node.name() != StringOf(edit.node)) continue;
    if (edit.infers) (*node.mutable_attr())["is_training"].set_b(false);
    if (edit.inputs.empty()) continue;
    node.clear_input();
    for (const rust::String& input : edit.inputs) node.add_input(StringOf(input));
  }
}

// A copy of a function under a name of its own, for which TensorFlow has no choice left.
tf::FunctionDef Renamed(tf::FunctionDef function, const std::string& name) {
  function.mutable_signature()->set_name(name);
  for (const char* attribute : {kInterface, kDevice}) function.mutable_attr()->erase(attribute);
  return function;
}

tf::NodeDef* AddNode(const char* name, const char* op, tf::FunctionDef* function) {
  tf::NodeDef* const node = function->add_node_def();
  node->set_name(name);
  node->set_op(op);
  return node;
}

// A function that calls `full` if its first input has elements, and `empty` if it has none: without
// steps or rows the two may give other errors.
tf::FunctionDef Chooser(const tf::FunctionDef& standard, const std::string& full,
                        const std::string& empty) {
  tf::FunctionDef chooser;
  *chooser.mutable_signature() = standard.signature();
  *chooser.mutable_attr() = standard.attr();
  *chooser.mutable_arg_attr() = standard.arg_attr();
  const auto& inputs = standard.signature().input_arg();
  tf::NodeDef* const size = AddNode("size", "Size", &chooser);
  size->add_input(inputs.Get(0).name());
  (*size->mutable_attr())["T"].set_type(inputs.Get(0).type());
  (*size->mutable_attr())["out_type"].set_type(tf::DT_INT32);
  tf::NodeDef* const zero = AddNode("zero", "Const", &chooser);
  (*zero->mutable_attr())["dtype"].set_type(tf::DT_INT32);
  tf::Tensor(0).AsProtoField((*zero->mutable_attr())["value"].mutable_tensor());
  tf::NodeDef* const any = AddNode("any", "Greater", &chooser);
  any->add_input("size:output:0");
  any->add_input("zero:output:0");
  (*any->mutable_attr())["T"].set_type(tf::DT_INT32);
  tf::NodeDef* const choice = AddNode("choice", "If", &chooser);
  choice->add_input("any:z:0");
  auto& attributes = *choice->mutable_attr();
  attributes["Tcond"].set_type(tf::DT_BOOL);
  attributes["then_branch"].mutable_func()->set_name(full);
  attributes["else_branch"].mutable_func()->set_name(empty);
  attributes["_lower_using_switch_merge"].set_b(true);
  for (const auto& input : inputs) {
    choice->add_input(input.name());
    attributes["Tin"].mutable_list()->add_type(input.type());
  }
  int number = 0;
  for (const auto& output : standard.signature().output_arg()) {
    attributes["Tout"].mutable_list()->add_type(output.type());
    (*chooser.mutable_ret())[output.name()] = "choice:output:" + std::to_string(number++);
  }
  return Renamed(chooser, standard.signature().name());
}

class ImplementationPass : public tf::GraphOptimizationPass {
 public:
  tf::Status Run(const tf::GraphOptimizationPassOptions& options) override {
    tf::FunctionLibraryDefinition* const library = options.flib_def;
    if (options.graph == nullptr || *options.graph == nullptr || library == nullptr ||
        IsUnwanted(options.session_options) || !AreLocalCpus(options.device_set)) {
      return tf::Status();
    }
    std::vector<const tf::FunctionDef*> functions;
    for (const std::string& name : library->ListFunctionNames()) {
      const tf::FunctionDef* const function = library->Find(name);
      if (function != nullptr) functions.push_back(function);  // Or it is gone since.
    }
    const auto is_marked = [](const tf::FunctionDef* function) {
      return function->attr().count(kInterface) > 0;
    };
    const bool any = std::any_of(functions.begin(), functions.end(), is_marked);
    return any ? Choose(functions, Uses(**options.graph), library) : tf::Status();
  }

 private:
  static tf::Status Choose(const std::vector<const tf::FunctionDef*>& functions, const Uses& uses,
                           tf::FunctionLibraryDefinition* library) {
    std::vector<std::string> definitions;
    definitions.reserve(functions.size());  // Slices point into it.
    std::vector<FunctionDefinition> described;
    for (const tf::FunctionDef* function : functions) {
      definitions.push_back(function->SerializeAsString());
      const std::string& one = definitions.back();
      described.push_back({{reinterpret_cast<const std::uint8_t*>(one.data()), one.size()}});
    }
    const Implementations choices =
        choose_implementations({described.data(), described.size()}, uses.all());
    for (const NodeEdit& edit : choices.edits) {
      const std::string name = StringOf(edit.function);
      tf::FunctionDef function = *library->Find(name);
      Apply(edit, &function);
      TF_RETURN_IF_ERROR(library->ReplaceFunction(name, function));
    }
    for (const Implementation& one : choices.chosen) {
      const std::string name = StringOf(one.function), full = name + "_cudnn",
                        empty = name + "_loop";
      const tf::FunctionDef standard = *library->Find(name);
      TF_RETURN_IF_ERROR(library->AddFunctionDef(Renamed(*library->Find(StringOf(one.by)), full)));
      TF_RETURN_IF_ERROR(library->AddFunctionDef(Renamed(standard, empty)));
      TF_RETURN_IF_ERROR(library->ReplaceFunction(name, Chooser(standard, full, empty)));
    }
    return tf::Status();
  }
};

}  // namespace

void RegisterImplementationPass() {
  if (GetTakeover() == Takeover::kOff || !wants_rewrites() || !wants_implementations()) return;
  static tf::optimization_registration::OptimizationPassRegistration choose(
      tf::OptimizationPassRegistry::PRE_PLACEMENT, 0,
      std::unique_ptr<tf::GraphOptimizationPass>(new ImplementationPass),
      "BlockcellImplementationPass");
}

}  // namespace blockcell

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

// A node of a graph without what no choice looks at: its attributes other than functions.
tf::NodeDef Described(const tf::Node& node) {
  tf::NodeDef described;
  described.set_name(node.name());
  described.set_op(node.type_string());
  std::vector<std::string> inputs(node.num_inputs());
  for (const tf::Edge* edge : node.in_edges()) {
    if (edge->IsControlEdge()) continue;
    inputs[edge->dst_input()] = edge->src()->name() + ":" + std::to_string(edge->src_output());
  }
  for (const std::string& input : inputs) described.add_input(input);
  for (const auto& attribute : node.attrs()) {
    if (attribute.second.has_func() || attribute.second.value_case() == tf::AttrValue::kB) {
      (*described.mutable_attr())[attribute.first] = attribute.second;
    }
  }
  return described;
}

// Messages as Rust reads them.
class Definitions {
 public:
  void Add(const tf::protobuf::MessageLite& message) {
    bytes_.push_back(message.SerializeAsString());
  }

  std::vector<Definition> all() const {
    std::vector<Definition> all;
    for (const std::string& one : bytes_) {
      all.push_back({{reinterpret_cast<const std::uint8_t*>(one.data()), one.size()}});
    }
    return all;
  }

 private:
  std::vector<std::string> bytes_;
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

void Apply(const FunctionCopy& copy, tf::FunctionDef* function) {
  function->mutable_signature()->set_name(StringOf(copy.copy));
  for (const char* attribute : {kInterface, kDevice}) function->mutable_attr()->erase(attribute);
}

// The function has no choice left for TensorFlow.
void Apply(const FunctionBody& body, tf::FunctionDef* function) {
  for (const char* attribute : {kInterface, kDevice}) function->mutable_attr()->erase(attribute);
  function->mutable_signature()->clear_control_output();
  function->clear_control_ret();
  function->clear_node_def();
  function->clear_ret();
  for (const NewFunctionNode& node : body.nodes) {
    function->add_node_def()->ParseFromArray(node.definition.data(), node.definition.size());
  }
  std::size_t number = 0;
  for (const auto& output : function->signature().output_arg()) {
    (*function->mutable_ret())[output.name()] = StringOf(body.results[number++]);
  }
}

class ImplementationPass : public tf::GraphOptimizationPass {
 public:
  tf::Status Run(const tf::GraphOptimizationPassOptions& options) override {
    tf::FunctionLibraryDefinition* const library = options.flib_def;
    if (options.graph == nullptr || *options.graph == nullptr || library == nullptr ||
        IsUnwanted(options.session_options) || !AreLocalCpus(options.device_set)) {
      return tf::Status();
    }
    std::vector<const tf::FunctionDef*> all;
    for (const std::string& name : library->ListFunctionNames()) {
      const tf::FunctionDef* const function = library->Find(name);
      if (function != nullptr) all.push_back(function);  // Or it is gone since.
    }
    const auto is_marked = [](const tf::FunctionDef* function) {
      return function->attr().count(kInterface) > 0;
    };
    if (!std::any_of(all.begin(), all.end(), is_marked)) return tf::Status();
    Definitions functions, nodes;
    for (const tf::FunctionDef* function : all) functions.Add(*function);
    for (const tf::Node* node : (*options.graph)->op_nodes()) nodes.Add(Described(*node));
    return Choose(functions.all(), nodes.all(), options.graph->get(), library);
  }

 private:
  static tf::Status Choose(const std::vector<Definition>& functions,
                           const std::vector<Definition>& nodes, tf::Graph* graph,
                           tf::FunctionLibraryDefinition* library) {
    const Implementations choices =
        choose_implementations({functions.data(), functions.size()}, {nodes.data(), nodes.size()});
    for (const NodeEdit& edit : choices.edits) {
      TF_RETURN_IF_ERROR(Replace(edit, library));
    }
    for (const FunctionCopy& copy : choices.copies) {
      tf::FunctionDef function = *library->Find(StringOf(copy.function));
      Apply(copy, &function);
      TF_RETURN_IF_ERROR(library->AddFunctionDef(function));
    }
    for (const FunctionBody& body : choices.bodies) {
      TF_RETURN_IF_ERROR(Replace(body, library));
    }
    // The graph may have a library of its own, in which TensorFlow looks for what its nodes call.
    tf::FunctionDefLibrary added;
    for (const FunctionCopy& copy : choices.copies) {
      const tf::OpDef* known = nullptr;
      if (graph->op_registry()->LookUpOpDef(StringOf(copy.copy), &known).ok()) continue;
      *added.add_function() = *library->Find(StringOf(copy.copy));
    }
    return graph->AddFunctionLibrary(added);
  }

  template <typename Change>
  static tf::Status Replace(const Change& change, tf::FunctionLibraryDefinition* library) {
    const std::string name = StringOf(change.function);
    tf::FunctionDef function = *library->Find(name);
    Apply(change, &function);
    return library->ReplaceFunction(name, function);
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

// The graph pass that lets functions of Keras 2 run cuDNN's operations. Which do is decided in
// Rust.
//
// It runs before TensorFlow places nodes, puts functions into the graphs that call them, and
// chooses implementations by device itself.

#include <algorithm>
#include <string>
#include <vector>

#include "blockcell/src/bridge.rs.h"
#include "blockcell/src/functions.rs.h"
#include "blockcell/src/graphs.rs.h"
#include "cpp/library.h"
#include "cpp/passes.h"
#include "cpp/tensors.h"
#include "tensorflow/core/framework/function.h"

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

// Messages as Rust reads them, as long as their bytes are there.
std::vector<Definition> DefinitionsOf(const std::vector<std::string>& messages) {
  std::vector<Definition> all;
  for (const std::string& message : messages) all.push_back({BytesOf(message)});
  return all;
}

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

class ImplementationPass : public Pass {
  tf::Status RunOn(tf::Graph* graph, const Options& options) override {
    tf::FunctionLibraryDefinition* const library = options.flib_def;
    if (library == nullptr || IsUnwanted(options) || !AreLocalCpus(options.device_set)) {
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
    std::vector<std::string> functions, nodes;
    for (const tf::FunctionDef* function : all) functions.push_back(function->SerializeAsString());
    for (const tf::Node* node : graph->op_nodes()) {
      nodes.push_back(Described(*node).SerializeAsString());
    }
    return Make(
        choose_implementations(SliceOf(DefinitionsOf(functions)), SliceOf(DefinitionsOf(nodes))),
        graph, library);
  }

  static tf::Status Make(const Implementations& choices, tf::Graph* graph,
                         tf::FunctionLibraryDefinition* library) {
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
  if (!overrides() || !wants_rewrites() || !wants_implementations()) return;
  Register(new ImplementationPass, "BlockcellImplementationPass",
           tf::OptimizationPassRegistry::PRE_PLACEMENT, 0);
}

}  // namespace blockcell

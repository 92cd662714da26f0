// The graph pass that tells our kernels which of their inputs are constants, and which are read
// from variables.
//
// A kernel packs constant weights once, and not in every call. The pass runs last of all, where a
// graph is cut into devices: nothing changes a constant after that, and one that is fed is no
// constant there any more. Whether a variable has changed the kernel finds out by itself; here it
// only learns where that is worth while.

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "blockcell/src/bridge.rs.h"
#include "cpp/attributes.h"
#include "cpp/library.h"
#include "cpp/passes.h"
#include "cpp/tensors.h"
#include "tensorflow/core/framework/attr_value.pb.h"

namespace blockcell {
namespace {

namespace tf = ::tensorflow;

// The node on a node's device whose output an input is, seen through `Identity`; none if it is on
// another.
const tf::Node* SourceOf(const tf::Edge* edge) {
  const std::string& device = edge->dst()->assigned_device_name();
  while (edge->src()->assigned_device_name() == device) {
    const tf::Node* const from = edge->src();
    if (from->type_string() != "Identity") return from;
    if (!from->input_edge(0, &edge).ok()) return nullptr;
  }
  return nullptr;
}

// Whether a node reads a variable that nothing else of the graph uses, but to read it.
bool ReadsOnly(const tf::Node* node) {
  const tf::Edge* handle = nullptr;
  if (node->type_string() != "ReadVariableOp" || !node->input_edge(0, &handle).ok()) return false;
  for (const tf::Edge* edge : handle->src()->out_edges()) {
    const bool reads = edge->IsControlEdge() || edge->dst()->type_string() == "ReadVariableOp";
    if (!reads && edge->src_output() == handle->src_output()) return false;
  }
  return true;
}

// Whether a graph is the body of a function. TensorFlow 1.15 does not tell.
#ifdef BLOCKCELL_TENSORFLOW_1
bool IsBody(const Pass::Options&) { return false; }
#else
bool IsBody(const Pass::Options& options) { return options.is_function_graph; }
#endif

class ConstantsPass : public Pass {
  tf::Status RunOn(tf::Graph* graph, const Options& options) override {
    const bool unwanted = IsUnwanted(options);
    const bool is_body = IsBody(options);
    std::map<const tf::Node*, std::int64_t> numbers;
    for (tf::Node* node : graph->op_nodes()) {
      const rust::Str op = StrOf(node->type_string());
      if (!packs_weights(op)) continue;
      const bool wanted = !unwanted && keeps_weights(op, NodeAttributes(node));
      // All graphs of a session share the kernel of a stateful node, by its name. Its inputs may
      // be constants in one, and fed in another.
      if (Note(node, wanted, &numbers) && node->op_def().is_stateful() && !is_body) {
        node->set_name(StringOf(own_name(StrOf(node->name()), ++last_)));
      }
    }
    return tf::Status();
  }

  // Notes which inputs of a node are constants or variables, and tells whether there is any. That
  // there is none is noted, too: a graph that has been through this pass may have come back with
  // other inputs.
  bool Note(tf::Node* node, bool wanted, std::map<const tf::Node*, std::int64_t>* numbers) {
    std::vector<std::int64_t> inputs;
    std::vector<std::int64_t> constants;
    const int count = wanted ? node->num_inputs() : 0;
    for (int input = 0; input < count; ++input) {
      const tf::Edge* edge = nullptr;
      if (!node->input_edge(input, &edge).ok()) continue;
      const tf::Node* const source = SourceOf(edge);
      if (source == nullptr) continue;
      if (source->type_string() == "Const") {
        const auto number = numbers->emplace(source, 0).first;
        if (number->second == 0) number->second = ++last_;
        constants.push_back(number->second);
      } else if (ReadsOnly(source)) {
        constants.push_back(0);
      } else {
        continue;
      }
      inputs.push_back(input);
    }
    const ConstantsNote note = note_constants(SliceOf(inputs), SliceOf(constants));
    tf::AttrValue value;
    value.mutable_list();
    for (const std::int64_t number : note.numbers) value.mutable_list()->add_i(number);
    node->AddAttr(StringOf(note.attribute), value);
    return !inputs.empty();
  }

  // The last number of a constant, or of a node with a name of its own. None is given twice.
  std::atomic<std::int64_t> last_{0};
};

}  // namespace

void RegisterConstantsPass() {
  if (!wants_constants()) return;
  Register(new ConstantsPass, "BlockcellConstantsPass",
           tf::OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, 1);
}

}  // namespace blockcell

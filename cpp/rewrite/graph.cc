#include "cpp/rewrite/graph.h"

#include <algorithm>
#include <iterator>

#include "cpp/devices.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"

namespace blockcell {
namespace rewrite {
namespace {

constexpr Gate kGates[] = {
    {"LSTMBlockCellGrad", 1, 0, 2, -1, 3, 7},  // dicfo
    {"GRUBlockCellGrad", 3, 0, 1, -1, 2, 4},   // d_r_bar_u_bar
    {"GRUBlockCellGrad", 2, 0, 1, 6, 3, 5},    // d_c_bar
};

template <typename T>
std::vector<std::int64_t> Values(const tf::Tensor& tensor) {
  const auto flat = tensor.flat<T>();
  return {flat.data(), flat.data() + flat.size()};
}

bool IsForXla(const tf::Node* node) {
  for (const char* attribute : {"_XlaCompile", "_XlaCluster", "_xla_compile_id"}) {
    if (node->attrs().Find(attribute) != nullptr) return true;
  }
  return false;
}

}  // namespace

std::vector<Output> InputsOf(const tf::Node* node) {
  std::vector<Output> inputs(node->num_inputs(), Output{nullptr, 0});
  for (const tf::Edge* edge : node->in_edges()) {
    if (!edge->IsControlEdge()) inputs[edge->dst_input()] = {edge->src(), edge->src_output()};
  }
  return inputs;
}

Output Origin(Output tensor) {
  while (Is(tensor.node, "Identity")) tensor = InputsOf(tensor.node)[0];
  return tensor;
}

bool ReadConstant(Output tensor, std::vector<std::int64_t>* values) {
  while (Is(tensor.node, "Enter")) tensor = InputsOf(tensor.node)[0];
  tf::Tensor value;
  if (!Is(tensor.node, "Const") || !tf::GetNodeAttr(tensor.node->attrs(), "value", &value).ok()) {
    return false;
  }
  if (value.dims() > 1) return false;
  if (value.dtype() == tf::DT_INT32) {
    *values = Values<tf::int32>(value);
  } else if (value.dtype() == tf::DT_INT64) {
    *values = Values<tf::int64>(value);
  } else {
    return false;
  }
  return true;
}

bool Flag(const tf::Node* node, const char* name, bool otherwise) {
  bool value;
  return tf::GetNodeAttr(node->attrs(), name, &value).ok() ? value : otherwise;
}

tf::DataType TypeOf(const tf::Node* node) {
  tf::DataType type;
  return tf::GetNodeAttr(node->attrs(), "T", &type).ok() ? type : tf::DT_INVALID;
}

bool Replaceable(const tf::Node* node) {
  const tf::DataType type = TypeOf(node);
  return (type == tf::DT_FLOAT || type == tf::DT_HALF) && OnCpu(node->assigned_device_name()) &&
         !IsForXla(node);
}

bool SameDevice(const tf::Node* left, const tf::Node* right) {
  return left->assigned_device_name() == right->assigned_device_name();
}

bool OnlyFor(const tf::Node* node, const tf::Node* root) {
  return node->out_edges().size() == 1 && !(*node->out_edges().begin())->IsControlEdge() &&
         Replaceable(node) && SameDevice(node, root);
}

bool IsGradientOfCell(const tf::Node* node) {
  return std::any_of(std::begin(kGates), std::end(kGates),
                     [node](const Gate& gate) { return Is(node, gate.op); });
}

const Gate* GateOf(Output tensor) {
  for (const Gate& gate : kGates) {
    if (tensor.index == gate.output && Is(tensor.node, gate.op)) return &gate;
  }
  return nullptr;
}

bool StartsWithX(const std::vector<Output>& parts, Output gate) {
  if (parts.size() != 2) return false;
  return Origin(parts[0]) == Origin(InputsOf(gate.node)[GateOf(gate)->x]);
}

bool EndsWithState(const std::vector<Output>& parts, Output gate) {
  const Gate& numbers = *GateOf(gate);
  const std::vector<Output> cell = InputsOf(gate.node);
  const auto same = [&cell](Output tensor, int input) {
    return Origin(tensor) == Origin(cell[input]);
  };
  const Output state = Origin(parts[1]);
  if (numbers.r < 0) return same(state, numbers.h_prev);
  if (!Is(state.node, "Mul")) return false;
  const std::vector<Output> factors = InputsOf(state.node);
  return (same(factors[0], numbers.h_prev) && same(factors[1], numbers.r)) ||
         (same(factors[1], numbers.h_prev) && same(factors[0], numbers.r));
}

}  // namespace rewrite
}  // namespace blockcell

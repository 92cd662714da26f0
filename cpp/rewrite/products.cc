#include "cpp/rewrite/products.h"

#include "tensorflow/core/framework/node_def_util.h"

namespace blockcell {
namespace rewrite {
namespace {

// The inputs of a ConcatV2 of columns.
bool ReadColumns(const tf::Node* node, std::vector<Output>* parts) {
  if (!Is(node, "ConcatV2")) return false;
  *parts = InputsOf(node);
  std::vector<std::int64_t> axis;
  if (!ReadConstant(parts->back(), &axis) || axis.size() != 1) return false;
  parts->pop_back();
  return axis[0] == 1 || axis[0] == -1;
}

}  // namespace

Product ProductOf(tf::Node* node, const std::vector<Output>& parts, Output gate) {
  const bool whole = parts.size() == 1;
  Product product{node, nullptr, whole, parts[0], false, false, parts, gate};
  product.has_x = StartsWithX(parts, gate);
  product.of_cell = product.has_x && EndsWithState(parts, gate);
  return product;
}

bool ReadProduct(tf::Node* node, Product* product) {
  if (!Is(node, "MatMul") || !Replaceable(node)) return false;
  if (!Flag(node, "transpose_a") || Flag(node, "transpose_b")) return false;
  const std::vector<Output> factors = InputsOf(node);
  if (GateOf(factors[1]) == nullptr || !SameDevice(factors[1].node, node)) return false;
  std::vector<Output> parts;
  tf::Node* const left = factors[0].node;
  if (SameDevice(left, node) && ReadColumns(left, &parts)) {
    *product = ProductOf(node, parts, factors[1]);
    product->concat = left;
    product->has_whole = true;
    product->whole = factors[0];
  } else {
    *product = ProductOf(node, {factors[0]}, factors[1]);
  }
  return true;
}

bool ReadBiasGradient(tf::Node* node, Output* gate) {
  if (!Is(node, "BiasAddGrad") || !Replaceable(node)) return false;
  std::string format;
  const bool named = tf::GetNodeAttr(node->attrs(), "data_format", &format).ok();
  *gate = InputsOf(node)[0];
  return (!named || format == "NHWC") && GateOf(*gate) != nullptr && SameDevice(gate->node, node);
}

bool GradientOf(Output tensor, Output* parameter) {
  Product product;
  Output gate;
  if (ReadProduct(tensor.node, &product)) {
    if (!product.of_cell) return false;
    *parameter = InputsOf(product.gate.node)[GateOf(product.gate)->weights];
    return true;
  }
  if (!ReadBiasGradient(tensor.node, &gate)) return false;
  *parameter = InputsOf(gate.node)[GateOf(gate)->bias];
  return true;
}

}  // namespace rewrite
}  // namespace blockcell

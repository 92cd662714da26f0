// Sums of products: all steps' gradients of weights, or of a bias, in one op.

#include <algorithm>
#include <vector>

#include "cpp/rewrite/products.h"
#include "cpp/rewrite/replacement.h"
#include "cpp/rewrite/rewrites.h"
#include "cpp/rewrite/shapes.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace blockcell {
namespace rewrite {
namespace {

// The terms of a sum, and the nodes that compute them for it alone.
struct Terms {
  std::vector<Output> addends;
  std::vector<Product> products;
  std::vector<Output> bias_gates;
  std::vector<const tf::Node*> absorbed;

  bool empty() const { return products.empty() && bias_gates.empty(); }
};

void Append(const Terms& from, Terms* to) {
  const auto append = [](const auto& more, auto* all) {
    all->insert(all->end(), more.begin(), more.end());
  };
  append(from.addends, &to->addends);
  append(from.products, &to->products);
  append(from.bias_gates, &to->bias_gates);
  append(from.absorbed, &to->absorbed);
}

// Whether a node is what ShieldSum put in place of an AddN: an op of this library that has addends
// only.
bool IsShield(const tf::Node* node) {
  int gates;
  return (Is(node, kMatMulAddN) || Is(node, kBiasAddGradAddN)) &&
         tf::GetNodeAttr(node->attrs(), "N", &gates).ok() && gates == 0;
}

// AddN refuses summands of different shapes, as our ops do. Add broadcasts: only if its summands
// cannot but have the same shape is it such a sum.
bool IsSum(const tf::Node* node) {
  if (!Replaceable(node)) return false;
  if (Is(node, "AddN") || IsShield(node)) return true;
  if (!Is(node, "Add") && !Is(node, "AddV2")) return false;
  const std::vector<Output> terms = InputsOf(node);
  return SameShape(terms[0], terms[1]);
}

// The terms of a node of this library, as the gradients that it registers in Python put it there.
// False if there are some that cannot be terms of another node.
bool ReadOwn(tf::Node* node, Terms* terms) {
  const bool matmul = Is(node, kMatMulAddN);
  if ((!matmul && !Is(node, kBiasAddGradAddN)) || IsShield(node)) return false;
  int addends, gates;
  if (!tf::GetNodeAttr(node->attrs(), "A", &addends).ok() ||
      !tf::GetNodeAttr(node->attrs(), "N", &gates).ok()) {
    return false;
  }
  const std::vector<Output> inputs = InputsOf(node);
  const auto end = inputs.end() - addends;
  terms->addends.assign(end, inputs.end());
  const auto gate = end - gates;
  if (!matmul) {
    terms->bias_gates.assign(gate, end);
    return std::all_of(gate, end, [](Output tensor) { return GateOf(tensor) != nullptr; });
  }
  const auto left = inputs.begin();
  const int parts = static_cast<int>(gate - left) / gates;
  for (int i = 0; i < gates; ++i) {
    if (GateOf(gate[i]) == nullptr) return false;
    const Product product = ProductOf(node, {left + i * parts, left + (i + 1) * parts}, gate[i]);
    if (!product.has_whole && !product.has_x) return false;
    terms->products.push_back(product);
  }
  return true;
}

Terms TermsOf(tf::Node* sum, const tf::Node* root);

// What a summand contributes to `root`. Empty if it is to stay what it is.
Terms TermsOfSummand(Output summand, const tf::Node* root) {
  Terms terms;
  tf::Node* const node = summand.node;
  if (!OnlyFor(node, root)) return terms;
  Product product;
  Output gate;
  if (ReadProduct(node, &product)) {
    terms.products.push_back(product);
  } else if (ReadBiasGradient(node, &gate)) {
    terms.bias_gates.push_back(gate);
  } else if (IsSum(node)) {
    terms = TermsOf(node, root);
  } else if (!ReadOwn(node, &terms)) {
    return Terms();
  }
  terms.absorbed.push_back(node);
  return terms;
}

Terms TermsOf(tf::Node* sum, const tf::Node* root) {
  Terms terms;
  for (const Output& summand : InputsOf(sum)) {
    const Terms more = TermsOfSummand(summand, root);
    if (more.empty()) {
      terms.addends.push_back(summand);
    } else {
      Append(more, &terms);
    }
  }
  return terms;
}

// Whether all left factors can be given in two parts, of which the first ones are equally wide, and
// the second ones. The gates are, or the sum is an error, so cells of one kind have the same size.
// If both parts are the cell's own inputs, the sum tells the width of x. If the second is another
// tensor, such as the zeros that an optimizer found a state to be, the weights have to.
bool AllOfCells(const std::vector<Product>& products) {
  const Gate* const gate = GateOf(products.front().gate);
  bool of_cells = true, of_same_weights = true;
  for (const Product& product : products) {
    if (!product.has_x || GateOf(product.gate) != gate) return false;
    of_cells = of_cells && product.of_cell;
  }
  if (of_cells) return true;
  const auto weights = [gate](const Product& product) {
    return InputsOf(product.gate.node)[gate->weights];
  };
  for (const Product& product : products) {
    of_same_weights = of_same_weights && SameShape(weights(product), weights(products.front()));
  }
  return of_same_weights;
}

bool AllWhole(const std::vector<Product>& products) {
  return std::all_of(products.begin(), products.end(),
                     [](const Product& product) { return product.has_whole; });
}

const char* ReplaceByMatMulAddN(tf::Graph* graph, tf::Node* last, const Terms& terms,
                                bool in_parts) {
  Replacement replacement(graph, last, kMatMulAddN);
  for (const tf::Node* node : terms.absorbed) replacement.Absorb(node);
  std::vector<Output> left, gates;
  for (const Product& product : terms.products) {
    gates.push_back(product.gate);
    if (!in_parts) {
      left.push_back(product.whole);
      continue;
    }
    left.insert(left.end(), product.parts.begin(), product.parts.end());
    if (product.concat != nullptr) replacement.Absorb(product.concat);
  }
  replacement.Inputs(left);
  replacement.Inputs(gates);
  replacement.Inputs(terms.addends);
  return replacement.Finish() != nullptr ? kMatMulAddN : nullptr;
}

const char* ReplaceByBiasAddGradAddN(tf::Graph* graph, tf::Node* last, const Terms& terms) {
  Replacement replacement(graph, last, kBiasAddGradAddN);
  for (const tf::Node* node : terms.absorbed) replacement.Absorb(node);
  replacement.Inputs(terms.bias_gates);
  replacement.Inputs(terms.addends);
  return replacement.Finish() != nullptr ? kBiasAddGradAddN : nullptr;
}

}  // namespace

bool IsTerm(tf::Node* node) {
  Product product;
  Output gate;
  Terms terms;
  return ReadProduct(node, &product) || ReadBiasGradient(node, &gate) || ReadOwn(node, &terms);
}

tf::Node* SumOf(tf::Node* term) {
  tf::Node* sum = nullptr;
  for (tf::Node* node = term; node->out_edges().size() == 1; node = sum) {
    tf::Node* const consumer = (*node->out_edges().begin())->dst();
    if (consumer->IsSink() || !OnlyFor(node, consumer) || !IsSum(consumer)) break;
    sum = consumer;
  }
  return sum;
}

const char* RewriteSum(tf::Graph* graph, tf::Node* sum) {
  const Terms terms = TermsOf(sum, sum);
  if (!terms.products.empty() && terms.bias_gates.empty()) {
    const bool in_parts = AllOfCells(terms.products);
    if (!in_parts && !AllWhole(terms.products)) return nullptr;
    return ReplaceByMatMulAddN(graph, sum, terms, in_parts);
  }
  if (!terms.bias_gates.empty() && terms.products.empty()) {
    return ReplaceByBiasAddGradAddN(graph, sum, terms);
  }
  return nullptr;
}

void ShieldSum(tf::Graph* graph, tf::Node* sum) {
  const std::vector<Output> summands = InputsOf(sum);
  // TensorFlow's optimizers leave sums of two as they are.
  if (!Is(sum, "AddN") || summands.size() <= 2 || !Replaceable(sum)) return;
  const auto term = std::find_if(summands.begin(), summands.end(),
                                 [](Output summand) { return IsTerm(summand.node); });
  if (term == summands.end()) return;
  const bool matmul = Is(term->node, "MatMul") || Is(term->node, kMatMulAddN);
  Replacement replacement(graph, sum, matmul ? kMatMulAddN : kBiasAddGradAddN);
  if (matmul) replacement.Inputs({});
  replacement.Inputs({});
  replacement.Inputs(summands);
  replacement.Finish();
}

const char* RewriteProduct(tf::Graph* graph, tf::Node* node) {
  Product product;
  if (!ReadProduct(node, &product) || product.concat == nullptr || !OnlyFor(product.concat, node)) {
    return nullptr;
  }
  Terms terms;
  terms.products.push_back(product);
  return ReplaceByMatMulAddN(graph, node, terms, true);
}

}  // namespace rewrite
}  // namespace blockcell

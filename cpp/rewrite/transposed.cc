// Products with transposed weights: the gradients of x and h_prev, without the matrix of both.

#include <limits>
#include <map>
#include <vector>

#include "cpp/rewrite/replacement.h"
#include "cpp/rewrite/rewrites.h"

namespace blockcell {
namespace rewrite {
namespace {

// Columns of the product, and its first rows, -1 for all.
struct Columns {
  std::int64_t rows, begin, size;
};

// Reads a Slice that begins in the first row.
bool ReadSlice(const tf::Node* node, Columns* columns) {
  if (!Is(node, "Slice") || !Replaceable(node)) return false;
  const std::vector<Output> inputs = InputsOf(node);
  std::vector<std::int64_t> begin, size;
  if (!ReadConstant(inputs[1], &begin) || !ReadConstant(inputs[2], &size)) return false;
  if (begin.size() != 2 || size.size() != 2 || begin[0] != 0) return false;
  *columns = {size[0], begin[1], size[1]};
  const auto fits = [](std::int64_t value, std::int64_t least) {
    return value >= least && value <= std::numeric_limits<int>::max();
  };
  return fits(columns->rows, -1) && fits(columns->begin, 0) && fits(columns->size, -1);
}

// What follows a product.
struct Slices {
  std::vector<tf::Node*> nodes;
  std::vector<int> begins, sizes;
  std::int64_t rows = -1;
};

// Whether nothing but slices of the same rows takes the product, and each of them may be computed
// as soon as the product is. A slice may wait for something that depends on another one.
bool ReadSlices(const tf::Node* product, Slices* slices) {
  std::map<int, tf::Node*> consumers;  // By number, for the same order in every process.
  for (const tf::Edge* edge : product->out_edges()) {
    if (!edge->IsControlEdge()) consumers[edge->dst()->id()] = edge->dst();
  }
  for (const auto& consumer : consumers) {
    tf::Node* const slice = consumer.second;
    Columns columns{};
    if (!SameDevice(slice, product) || !ReadSlice(slice, &columns)) return false;
    if (!slices->nodes.empty() && columns.rows != slices->rows) return false;
    for (const tf::Node* awaited : WaitsFor(slice)) {
      if (DependsOn(awaited, product)) return false;
    }
    slices->nodes.push_back(slice);
    slices->begins.push_back(static_cast<int>(columns.begin));
    slices->sizes.push_back(static_cast<int>(columns.size));
    slices->rows = columns.rows;
  }
  return !slices->nodes.empty();
}

}  // namespace

const char* RewriteTransposed(tf::Graph* graph, tf::Node* product) {
  if (!Is(product, "MatMul") || !Replaceable(product)) return nullptr;
  if (Flag(product, "transpose_a") || !Flag(product, "transpose_b")) return nullptr;
  const std::vector<Output> factors = InputsOf(product);
  if (GateOf(factors[0]) == nullptr || !SameDevice(factors[0].node, product)) return nullptr;

  Slices slices;
  const bool sliced = ReadSlices(product, &slices);
  if (!sliced) {
    slices = Slices();
    slices.begins = {0};
    slices.sizes = {-1};
  }
  Replacement replacement(graph, product, kMatMulSlice);
  for (const tf::Node* slice : slices.nodes) replacement.Absorb(slice);
  replacement.Input(factors[0]);
  replacement.Input(factors[1]);
  replacement.definition()
      .Attr("P", static_cast<int>(slices.begins.size()))
      .Attr("begins", slices.begins)
      .Attr("sizes", slices.sizes)
      .Attr("rows", static_cast<int>(slices.rows));
  const tf::Node* const node =
      sliced ? replacement.FinishWithOutputs(slices.nodes) : replacement.Finish();
  return node != nullptr ? kMatMulSlice : nullptr;
}

}  // namespace rewrite
}  // namespace blockcell

// The products around the cells: what their factors are.

#ifndef BLOCKCELL_CPP_REWRITE_PRODUCTS_H_
#define BLOCKCELL_CPP_REWRITE_PRODUCTS_H_

#include <vector>

#include "cpp/rewrite/graph.h"

namespace blockcell {
namespace rewrite {

// left^T @ gate, a gradient of weights.
struct Product {
  tf::Node* node;    // The MatMul, or the op of this library that has it as a term.
  tf::Node* concat;  // The ConcatV2 of the left factor, null if there is none.
  bool has_whole;    // Whether there is one tensor that is the left factor.
  Output whole;      // That tensor.
  bool of_cell;      // Whether `parts` are the cell's own inputs, so the product's shape is known.
  bool has_x;        // Whether the first of two `parts` is the cell's own x.
  std::vector<Output> parts;
  Output gate;
};

// A product whose left factor is [parts[0] | parts[1] | ...], which `whole` may be, too.
Product ProductOf(tf::Node* node, const std::vector<Output>& parts, Output gate);

// Whether a node is a product of this kind.
bool ReadProduct(tf::Node* node, Product* product);

// The sum over the rows of `gate`, a gradient of a bias.
bool ReadBiasGradient(tf::Node* node, Output* gate);

// Whether a tensor is the gradient of a cell's weights or bias, as one cell has it, and of which.
// The kernels of the cells make sure that the two have the same shape.
bool GradientOf(Output tensor, Output* parameter);

}  // namespace rewrite
}  // namespace blockcell

#endif  // BLOCKCELL_CPP_REWRITE_PRODUCTS_H_

// Reading a graph: tensors, constants, and the gradient ops of the cells.

#ifndef BLOCKCELL_CPP_REWRITE_GRAPH_H_
#define BLOCKCELL_CPP_REWRITE_GRAPH_H_

#include <cstdint>
#include <vector>

#include "tensorflow/core/graph/graph.h"

namespace blockcell {
namespace rewrite {

namespace tf = ::tensorflow;

// A tensor of a graph: an output of a node.
struct Output {
  tf::Node* node;
  int index;
};

inline bool operator==(const Output& left, const Output& right) {
  return left.node == right.node && left.index == right.index;
}

inline bool Is(const tf::Node* node, const char* op) { return node->type_string() == op; }

// The tensors that a node takes, in the order of its inputs.
std::vector<Output> InputsOf(const tf::Node* node);

// The first tensor on the way back from `tensor` through nodes Identity.
Output Origin(Output tensor);

// Reads a scalar or vector of integers that a Const makes, also one that comes into a loop.
bool ReadConstant(Output tensor, std::vector<std::int64_t>* values);

// The value of an attribute; `otherwise` if there is none.
bool Flag(const tf::Node* node, const char* name, bool otherwise = false);
tf::DataType TypeOf(const tf::Node* node);

// Whether the pass may replace a node: it computes floats or halves on a CPU, and is not for XLA.
bool Replaceable(const tf::Node* node);

// Whether two nodes were placed on one device.
bool SameDevice(const tf::Node* left, const tf::Node* right);

// Whether `node` is replaceable, on the device of `root`, and nothing but one input of one other
// node depends on it, by data or control.
bool OnlyFor(const tf::Node* node, const tf::Node* root);

// An output of a cell's gradient op that is a factor of the gradients of weights and bias. Numbers
// are those of the op's inputs and outputs.
struct Gate {
  const char* op;
  int output;
  int x;
  int h_prev;
  int r;  // What h_prev is multiplied by, or -1.
  int weights;
  int bias;
};

// Whether a node is such an op.
bool IsGradientOfCell(const tf::Node* node);

// The entry for a tensor, null if it is no such output.
const Gate* GateOf(Output tensor);

// Whether there are two tensors, and the first is the x of the cell that the gate is of.
bool StartsWithX(const std::vector<Output>& parts, Output gate);

// Whether the second one is the cell's h_prev, times r where the gate takes that.
bool EndsWithState(const std::vector<Output>& parts, Output gate);

}  // namespace rewrite
}  // namespace blockcell

#endif  // BLOCKCELL_CPP_REWRITE_GRAPH_H_

// The rewrites. Each looks at one node, and puts a node of this library in its place if it can.

#ifndef BLOCKCELL_CPP_REWRITE_REWRITES_H_
#define BLOCKCELL_CPP_REWRITE_REWRITES_H_

#include "cpp/rewrite/graph.h"

namespace blockcell {
namespace rewrite {

constexpr char kMatMulAddN[] = "BlockcellMatMulAddN";
constexpr char kMatMulSlice[] = "BlockcellMatMulSlice";
constexpr char kBiasAddGradAddN[] = "BlockcellBiasAddGradAddN";

// Whether a node is what a sum for RewriteSum is made of: a product left^T @ gate, a sum of the
// rows of a gate, or an op of this library with such terms.
bool IsTerm(tf::Node* node);

// The largest sum that a term is part of, AddN or a tree of Add; null if there is none.
tf::Node* SumOf(tf::Node* term);

// A sum of terms, and perhaps of other tensors. Each rewrite returns the name of the op that took
// the place of the node, null if that stays.
const char* RewriteSum(tf::Graph* graph, tf::Node* sum);

// Keeps an AddN with such terms as one node until RewriteSum: puts an op of this library in its
// place that adds the same tensors up and has the same name, so that whoever feeds or fetches it
// finds it. Where memory seems to be short, TensorFlow's memory optimizer cuts an AddN into a chain
// of assignments, which would hide the sum.
void ShieldSum(tf::Graph* graph, tf::Node* sum);

// A product left^T @ gate alone, whose left factor is a ConcatV2 for nobody else.
const char* RewriteProduct(tf::Graph* graph, tf::Node* product);

// A product gate @ right^T, with the slices that follow.
const char* RewriteTransposed(tf::Graph* graph, tf::Node* product);

}  // namespace rewrite
}  // namespace blockcell

#endif  // BLOCKCELL_CPP_REWRITE_REWRITES_H_

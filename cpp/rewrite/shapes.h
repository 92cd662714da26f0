// What can be known of shapes before a graph runs, as far as the pass needs it.

#ifndef BLOCKCELL_CPP_REWRITE_SHAPES_H_
#define BLOCKCELL_CPP_REWRITE_SHAPES_H_

#include "cpp/rewrite/graph.h"

namespace blockcell {
namespace rewrite {

// Whether two tensors of one frame certainly have the same shape, whenever both have a value.
bool SameShape(Output left, Output right);

}  // namespace rewrite
}  // namespace blockcell

#endif  // BLOCKCELL_CPP_REWRITE_SHAPES_H_

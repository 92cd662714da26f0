// Putting a new node into a graph in place of others.

#ifndef BLOCKCELL_CPP_REWRITE_REPLACEMENT_H_
#define BLOCKCELL_CPP_REWRITE_REPLACEMENT_H_

#include <map>
#include <vector>

#include "cpp/rewrite/graph.h"
#include "tensorflow/core/framework/node_def_builder.h"

namespace blockcell {
namespace rewrite {

// A node that takes the place of `last`, with its name and device, and of nodes before it. It waits
// for what these waited for. Tell it all inputs, attributes and absorbed nodes, then Finish.
//
// Frames: the nodes absorbed neither enter nor leave a frame, and depend on each other. So they are
// all in the frame of `last`, as are the new node's inputs. Dead inputs make the new node dead as
// they made `last` dead through the nodes between.
//
// Cycles: each new edge leads from a node that `last` depended on. A path from `last` back to such
// a node would have been a cycle before.
class Replacement {
 public:
  Replacement(tf::Graph* graph, tf::Node* last, const char* op);

  // The inputs of the op, in its order.
  void Input(Output tensor);
  void Inputs(const std::vector<Output>& tensors);

  tf::NodeDefBuilder& definition() { return definition_; }

  // Takes over what a node waits for.
  void Absorb(const tf::Node* node);

  // Adds the node, leads the consumers of `last` to it, and removes the nodes that have none left.
  // Null, and no change, if TensorFlow does not accept the node.
  tf::Node* Finish();

  // The same for a node that has an output for each of `last`, in this order, in place of their
  // first outputs. They are all the consumers of the node that it takes the name of.
  tf::Node* FinishWithOutputs(const std::vector<tf::Node*>& last);

 private:
  tf::NodeDefBuilder::NodeOut NodeOut(Output tensor);
  tf::Node* Add();

  tf::Graph* const graph_;
  tf::Node* const owner_;
  tf::NodeDefBuilder definition_;
  std::vector<Output> inputs_;
  std::map<int, tf::Node*> waits_for_;  // By number, for the same order in every process.
};

// What a node waits for by control, directly or through a constant among its inputs. In a loop, and
// below tf.control_dependencies, the constant may be all that waits.
std::vector<tf::Node*> WaitsFor(const tf::Node* node);

// Whether `node` depends on `other`, in this round of a loop or a later one.
bool DependsOn(const tf::Node* node, const tf::Node* other);

}  // namespace rewrite
}  // namespace blockcell

#endif  // BLOCKCELL_CPP_REWRITE_REPLACEMENT_H_

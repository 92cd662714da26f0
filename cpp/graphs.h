// TensorFlow's graphs as the rewrites in Rust take them.

#ifndef BLOCKCELL_CPP_GRAPHS_H_
#define BLOCKCELL_CPP_GRAPHS_H_

#include <string>
#include <vector>

#include "blockcell/src/graphs.rs.h"
#include "cpp/devices.h"
#include "tensorflow/core/graph/graph.h"

namespace blockcell {

// A graph's nodes, numbered, and its edges; without the nodes that TensorFlow calls source and
// sink. Points into the graph, which must not change while the description is read.
class Description {
 public:
  Description(const tensorflow::Graph& graph, const LocalCpus& cpus);

  rust::Slice<const GraphNode> nodes() const { return {described_.data(), described_.size()}; }
  rust::Slice<const GraphEdge> edges() const { return {edges_.data(), edges_.size()}; }

  // Applies changes to the graph. Returns how many there were; none are made if TensorFlow does not
  // accept a node.
  std::size_t Apply(const Changes& changes, tensorflow::Graph* graph);

 private:
  void Describe(const tensorflow::Node& node, const LocalCpus& cpus);
  void AddEdge(const GraphEdge& edge, tensorflow::Graph* graph) const;
  void RemoveControlEdge(const GraphEdge& edge, tensorflow::Graph* graph) const;
  bool AddNodes(const Changes& changes, tensorflow::Graph* graph);

  std::vector<tensorflow::Node*> nodes_;
  std::vector<std::string> definitions_;
  std::vector<GraphNode> described_;
  std::vector<GraphEdge> edges_;
};

}  // namespace blockcell

#endif  // BLOCKCELL_CPP_GRAPHS_H_

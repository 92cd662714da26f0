// The graph passes that put ops of this library around the cells. What they do is decided in Rust.
//
// The pass that rewrites runs at the last point before a graph is cut into devices: after
// TensorFlow's own optimizers, which know nothing of our ops, and after pruning. There, what is fed
// and fetched are nodes of their own. A tensor that is fetched has a consumer, and one that is fed
// has no product before it, so neither is lost. At an earlier point a session has neither. A pass
// before the optimizers only shields the sums from them.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "blockcell/src/bridge.rs.h"
#include "blockcell/src/graphs.rs.h"
#include "cpp/library.h"
#include "cpp/passes.h"
#include "cpp/tensors.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/graph/algorithm.h"

namespace blockcell {
namespace {

namespace tf = ::tensorflow;

// In bytes. Longer constants are weights, whose elements no rewrite looks at. The numbers of the
// steps of a sequence are shorter.
constexpr std::size_t kMostOfAConstant = 16384;

bool IsZero(const tf::TensorProto& tensor) {
  const auto& content = tensor.tensor_content();
  return !content.empty() &&
         std::all_of(content.begin(), content.end(), [](char byte) { return byte == 0; });
}

// The definition of a node, without inputs and without the elements of a long constant:
// one byte of them is left where all are zero.
std::string DefinitionOf(const tf::Node& node) {
  tf::NodeDef definition;
  for (const auto& attribute : node.def().attr()) {
    tf::AttrValue& copy = (*definition.mutable_attr())[attribute.first];
    if (!attribute.second.has_tensor() ||
        attribute.second.tensor().ByteSizeLong() <= kMostOfAConstant) {
      copy = attribute.second;
      continue;
    }
    copy.mutable_tensor()->set_dtype(attribute.second.tensor().dtype());
    if (IsZero(attribute.second.tensor()))
      copy.mutable_tensor()->set_tensor_content(std::string(1, '\0'));
    *copy.mutable_tensor()->mutable_tensor_shape() = attribute.second.tensor().tensor_shape();
  }
  return definition.SerializeAsString();
}

rust::Slice<const std::int32_t> OutputTypes(const tf::Node& node) {
  static_assert(sizeof(tf::DataType) == sizeof(std::int32_t), "TensorFlow's numbers have 32 bits");
  const auto& types = node.output_types();
  return {reinterpret_cast<const std::int32_t*>(types.data()), types.size()};
}

bool TakesReferences(const tf::Node& node) {
  const auto& types = node.input_types();
  return std::any_of(types.begin(), types.end(), tf::IsRefType);
}

bool IsTarget(const tf::Node& node) {
  const auto& edges = node.out_edges();
  return std::any_of(edges.begin(), edges.end(),
                     [](const tf::Edge* edge) { return edge->dst()->IsSink(); });
}

// A graph's nodes, numbered, and its edges; without the nodes that TensorFlow calls source and
// sink. Points into the graph, which must not change while the description is read.
class Description {
 public:
  Description(const tf::Graph& graph, const LocalCpus& cpus) {
    std::vector<std::size_t> numbers(graph.num_node_ids());
    for (tf::Node* node : graph.op_nodes()) {
      numbers[node->id()] = nodes_.size();
      nodes_.push_back(node);
    }
    definitions_.reserve(nodes_.size());  // Slices point into it.
    described_.reserve(nodes_.size());
    for (const tf::Node* node : nodes_) Describe(*node, cpus);
    edges_.reserve(graph.num_edges());
    for (const tf::Edge* edge : graph.edges()) {
      if (edge->src()->IsSource() || edge->dst()->IsSink()) continue;
      edges_.push_back({numbers[edge->src()->id()], edge->src_output(), numbers[edge->dst()->id()],
                        edge->dst_input()});
    }
  }

  rust::Slice<const GraphNode> nodes() const { return SliceOf(described_); }
  rust::Slice<const GraphEdge> edges() const { return SliceOf(edges_); }

  // Applies changes to the graph. Returns how many there were; none are made if TensorFlow does not
  // accept a node.
  std::size_t Apply(const Changes& changes, tf::Graph* graph) {
    if (!AddNodes(changes, graph)) {
      note_failed_pass();
      return 0;
    }
    for (const Change& change : changes.changes) {
      switch (change.kind) {
        case ChangeKind::AddEdge:
          AddEdge(change.edge, graph);
          break;
        case ChangeKind::RemoveControlEdge:
          RemoveControlEdge(change.edge, graph);
          break;
        default:
          graph->RemoveNode(nodes_[change.edge.to]);
      }
    }
    return changes.changes.size();
  }

 private:
  void Describe(const tf::Node& node, const LocalCpus& cpus) {
    const std::string& device = node.assigned_device_name();
    definitions_.push_back(reads_attributes(StrOf(node.type_string())) ? DefinitionOf(node)
                                                                       : std::string());
    described_.push_back({StrOf(node.name()), StrOf(node.type_string()), StrOf(device),
                          cpus.Have(device), TakesReferences(node), node.op_def().is_stateful(),
                          IsTarget(node), OutputTypes(node), BytesOf(definitions_.back())});
  }

  bool AddNodes(const Changes& changes, tf::Graph* graph) {
    const std::size_t before = nodes_.size();
    for (const NewNode& node : changes.nodes) {
      tf::NodeDef definition;
      tf::Status status;
      if (definition.ParseFromArray(node.definition.data(), node.definition.size())) {
        const tf::OpDef* op = nullptr;
        if (graph->op_registry()->LookUpOpDef(definition.op(), &op).ok()) {
          // TensorFlow 1.15 does not do that by itself.
          tf::AddDefaultsToNodeDef(*op, &definition);
        }
        nodes_.push_back(graph->AddNode(definition, &status));
      }
      if (nodes_.back() == nullptr || !status.ok() || definition.name().empty()) {
        for (std::size_t added = before; added < nodes_.size(); ++added) {
          if (nodes_[added] != nullptr) graph->RemoveNode(nodes_[added]);
        }
        return false;
      }
      nodes_.back()->set_assigned_device_name({node.device.data(), node.device.size()});
    }
    return true;
  }

  void AddEdge(const GraphEdge& edge, tf::Graph* graph) const {
    tf::Node* const from = nodes_[edge.from];
    tf::Node* const to = nodes_[edge.to];
    if (edge.output < 0) {
      graph->AddControlEdge(from, to);
      return;
    }
    const tf::Edge* replaced = nullptr;
    if (to->input_edge(edge.input, &replaced).ok()) graph->RemoveEdge(replaced);
    graph->AddEdge(from, edge.output, to, edge.input);
  }

  void RemoveControlEdge(const GraphEdge& edge, tf::Graph* graph) const {
    for (const tf::Edge* candidate : nodes_[edge.to]->in_edges()) {
      if (candidate->IsControlEdge() && candidate->src() == nodes_[edge.from]) {
        graph->RemoveEdge(candidate);
        return;
      }
    }
  }

  std::vector<tf::Node*> nodes_;
  std::vector<std::string> definitions_;
  std::vector<GraphNode> described_;
  std::vector<GraphEdge> edges_;
};

bool StartsRewrites(const tf::Graph& graph) {
  const auto nodes = graph.op_nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const tf::Node* node) {
    return starts_rewrites(StrOf(node->type_string()));
  });
}

using Rewrite = Changes (*)(rust::Slice<const GraphNode>, rust::Slice<const GraphEdge>);

class RewritePass : public Pass {
 public:
  RewritePass(Rewrite rewrite, bool is_last) : rewrite_(rewrite), is_last_(is_last) {}

 private:
  tf::Status RunOn(tf::Graph* graph, const Options& options) override {
    if (!StartsRewrites(*graph)) return tf::Status();
    if (IsUnwanted(options)) {
      if (is_last_) note_unwanted();
      return tf::Status();
    }
    const auto start = std::chrono::steady_clock::now();
    Description description(*graph, LocalCpus(options.device_set));
    const std::size_t nodes = description.nodes().size();
    const Changes changes = rewrite_(description.nodes(), description.edges());
    if (description.Apply(changes, graph) > 0) tf::FixupSourceAndSinkEdges(graph);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    if (is_last_) note_time(nodes, passed.count());
    return tf::Status();
  }

  const Rewrite rewrite_;
  const bool is_last_;
};

}  // namespace

void RegisterRewritePasses() {
  if (!overrides() || !wants_rewrites()) return;
  using tf::OptimizationPassRegistry;
  Register(new RewritePass(shield_graph, false), "BlockcellShieldPass",
           OptimizationPassRegistry::POST_PLACEMENT, 1);
  Register(new RewritePass(rewrite_graph, true), "BlockcellRewritePass",
           OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, 0);
}

}  // namespace blockcell

#include "cpp/rewrite/replacement.h"

#include <set>

#include "tensorflow/core/framework/node_def.pb.h"

namespace blockcell {
namespace rewrite {
namespace {

std::vector<const tf::Edge*> OutEdges(const tf::Node* node) {
  return {node->out_edges().begin(), node->out_edges().end()};
}

// Makes what waits for `from` by control wait for `to`.
void RedirectControl(tf::Graph* graph, tf::Node* from, tf::Node* to) {
  for (const tf::Edge* edge : OutEdges(from)) {
    if (!edge->IsControlEdge()) continue;
    if (!edge->dst()->IsSink()) graph->AddControlEdge(to, edge->dst());
    graph->RemoveEdge(edge);
  }
}

// Makes the consumers of `from` take the output `index` of `to`, and wait for that.
void Redirect(tf::Graph* graph, tf::Node* from, tf::Node* to, int index) {
  RedirectControl(graph, from, to);
  for (const tf::Edge* edge : OutEdges(from)) {
    tf::Node* const consumer = edge->dst();
    const int input = edge->dst_input();
    graph->RemoveEdge(edge);
    graph->AddEdge(to, index, consumer, input);
  }
}

// Whether a node only computes its outputs, so that it is not missed where nobody reads them.
bool IsPure(const tf::Node* node) {
  static const std::set<std::string>* const ops =
      new std::set<std::string>{"Add",
                                "AddN",
                                "AddV2",
                                "BiasAddGrad",
                                "BlockcellBiasAddGradAddN",
                                "BlockcellMatMulAddN",
                                "Const",
                                "Enter",
                                "ConcatV2",
                                "Identity",
                                "MatMul",
                                "Slice"};
  return ops->count(node->type_string()) > 0;
}

bool HasConsumer(const tf::Node* node) {
  for (const tf::Edge* edge : node->out_edges()) {
    if (!edge->dst()->IsSink()) return true;
  }
  return false;
}

// Removes a node that has no consumer left, and those that have none left thereby. The executor
// would run them: a session's graph has been pruned before.
void RemoveUnused(tf::Graph* graph, tf::Node* node) {
  std::vector<tf::Node*> unused{node};
  while (!unused.empty()) {
    tf::Node* const next = unused.back();
    unused.pop_back();
    std::set<int> before;
    for (const tf::Edge* edge : next->in_edges()) {
      if (!edge->IsControlEdge()) before.insert(edge->src()->id());
    }
    graph->RemoveNode(next);
    for (const int id : before) {
      tf::Node* const input = graph->FindNodeId(id);
      if (IsPure(input) && !HasConsumer(input)) unused.push_back(input);
    }
  }
}

}  // namespace

Replacement::Replacement(tf::Graph* graph, tf::Node* last, const char* op)
    : graph_(graph), owner_(last), definition_(last->name(), op) {
  definition_.Device(last->requested_device()).Attr("T", TypeOf(last));
  Absorb(last);
}

tf::NodeDefBuilder::NodeOut Replacement::NodeOut(Output tensor) {
  inputs_.push_back(tensor);
  return {tensor.node->name(), tensor.index, tensor.node->output_type(tensor.index)};
}

void Replacement::Input(Output tensor) { definition_.Input(NodeOut(tensor)); }

void Replacement::Inputs(const std::vector<Output>& tensors) {
  std::vector<tf::NodeDefBuilder::NodeOut> list;
  for (const Output& tensor : tensors) list.push_back(NodeOut(tensor));
  definition_.Input(list);
}

void Replacement::Absorb(const tf::Node* node) {
  for (tf::Node* const awaited : WaitsFor(node)) waits_for_[awaited->id()] = awaited;
}

tf::Node* Replacement::Add() {
  tf::NodeDef definition;
  if (!definition_.Finalize(&definition).ok()) return nullptr;
  tf::Status status;
  tf::Node* const node = graph_->AddNode(definition, &status);
  if (!status.ok()) return nullptr;
  node->set_assigned_device_name(owner_->assigned_device_name());
  std::set<int> sources;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    graph_->AddEdge(inputs_[i].node, inputs_[i].index, node, static_cast<int>(i));
    sources.insert(inputs_[i].node->id());
  }
  for (const auto& entry : waits_for_) {
    if (sources.count(entry.first) == 0) graph_->AddControlEdge(entry.second, node);
  }
  return node;
}

tf::Node* Replacement::Finish() {
  tf::Node* const node = Add();
  if (node == nullptr) return nullptr;
  Redirect(graph_, owner_, node, 0);
  RemoveUnused(graph_, owner_);
  return node;
}

tf::Node* Replacement::FinishWithOutputs(const std::vector<tf::Node*>& last) {
  tf::Node* const node = Add();
  if (node == nullptr) return nullptr;
  RedirectControl(graph_, owner_, node);
  for (std::size_t i = 0; i < last.size(); ++i) {
    Redirect(graph_, last[i], node, static_cast<int>(i));
    RemoveUnused(graph_, last[i]);  // With the last of them goes the owner.
  }
  return node;
}

std::vector<tf::Node*> WaitsFor(const tf::Node* node) {
  std::vector<tf::Node*> awaited;
  for (const tf::Edge* edge : node->in_edges()) {
    tf::Node* const input = edge->src();
    if (input->IsSource()) continue;
    if (edge->IsControlEdge() || Is(input, "Enter")) {
      awaited.push_back(input);
    } else if (Is(input, "Const")) {
      for (tf::Node* const before : WaitsFor(input)) awaited.push_back(before);
    }
  }
  return awaited;
}

bool DependsOn(const tf::Node* node, const tf::Node* other) {
  std::set<int> seen{node->id()};
  std::vector<const tf::Node*> open{node};
  while (!open.empty()) {
    const tf::Node* const next = open.back();
    open.pop_back();
    if (next == other) return true;
    for (const tf::Edge* edge : next->in_edges()) {
      if (seen.insert(edge->src()->id()).second) open.push_back(edge->src());
    }
  }
  return false;
}

}  // namespace rewrite
}  // namespace blockcell

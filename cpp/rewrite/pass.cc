// The graph passes that put ops of this library around the cells.
//
// The pass that rewrites runs at the last point before a graph is cut into devices: after
// TensorFlow's own optimizers, which know nothing of our ops, and after pruning. There, what is fed
// and fetched are nodes of their own. A tensor that is fetched has a consumer, and one that is fed
// has no product before it, so neither is lost. At an earlier point a session has neither. A pass
// before the optimizers only shields the sums from them.

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <vector>

#include "cpp/kernels.h"
#include "cpp/library.h"
#include "cpp/rewrite/rewrite.h"
#include "cpp/rewrite/rewrites.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/graph/algorithm.h"

namespace blockcell {
namespace rewrite {
namespace {

struct Counter {
  const char* op;
  std::atomic<std::size_t> nodes;
};

Counter counters[] = {{kBiasAddGradAddN, {0}}, {kMatMulAddN, {0}}, {kMatMulSlice, {0}}};

void Count(const char* op) {
  for (Counter& counter : counters) {
    if (std::strcmp(counter.op, op) == 0) ++counter.nodes;
  }
}

bool Wanted() {
  if (GetTakeover() == Takeover::kOff) return false;
  const char* const wanted = std::getenv("BLOCKCELL_REWRITE");
  if (wanted == nullptr || std::strcmp(wanted, "1") == 0) return true;
  if (std::strcmp(wanted, "0") == 0) return false;
  std::cerr << "blockcell: BLOCKCELL_REWRITE is \"" << wanted
            << "\", expected 0 or 1; graphs are rewritten\n";
  return true;
}

// The numbers of all nodes that a function accepts. Numbers of nodes that are removed stay free.
template <typename Function>
std::vector<int> Find(const tf::Graph& graph, Function accept) {
  std::vector<int> found;
  for (tf::Node* node : graph.op_nodes()) {
    if (accept(node)) found.push_back(node->id());
  }
  return found;
}

bool HasGate(const tf::Graph& graph) {
  for (const tf::Node* node : graph.op_nodes()) {
    if (IsGradientOfCell(node)) return true;
  }
  return false;
}

// Applies a rewrite to the nodes of these numbers that are still there.
template <typename Function>
int ForEach(tf::Graph* graph, const std::vector<int>& numbers, Function rewrite) {
  int rewritten = 0;
  for (const int number : numbers) {
    tf::Node* const node = graph->FindNodeId(number);
    const char* const op = node != nullptr ? rewrite(graph, node) : nullptr;
    if (op == nullptr) continue;
    Count(op);
    ++rewritten;
  }
  return rewritten;
}

class RewritePass : public tf::GraphOptimizationPass {
 public:
  tf::Status Run(const tf::GraphOptimizationPassOptions& options) override {
    if (options.graph == nullptr || *options.graph == nullptr) return tf::Status();
    tf::Graph* const graph = options.graph->get();
    if (!HasGate(*graph)) return tf::Status();
    const auto sum_of = [](tf::Graph* all, tf::Node* term) {
      tf::Node* const sum = SumOf(term);
      return sum != nullptr ? RewriteSum(all, sum) : nullptr;
    };
    const auto is_matmul = [](const tf::Node* node) { return Is(node, "MatMul"); };
    int rewritten = ForEach(graph, Find(*graph, IsTerm), sum_of);
    rewritten += ForEach(graph, Find(*graph, is_matmul), RewriteProduct);
    rewritten += ForEach(graph, Find(*graph, is_matmul), RewriteTransposed);
    if (rewritten > 0) tf::FixupSourceAndSinkEdges(graph);
    return tf::Status();
  }
};

class ShieldPass : public tf::GraphOptimizationPass {
 public:
  tf::Status Run(const tf::GraphOptimizationPassOptions& options) override {
    if (options.graph == nullptr || *options.graph == nullptr) return tf::Status();
    tf::Graph* const graph = options.graph->get();
    if (!HasGate(*graph)) return tf::Status();
    for (const int number : Find(*graph, [](const tf::Node* node) { return Is(node, "AddN"); })) {
      ShieldSum(graph, graph->FindNodeId(number));
    }
    return tf::Status();
  }
};

}  // namespace
}  // namespace rewrite

void RegisterRewritePass() {
  if (!RewritesGraphs()) return;
  static tensorflow::optimization_registration::OptimizationPassRegistration shield(
      tensorflow::OptimizationPassRegistry::POST_PLACEMENT, 1,
      std::unique_ptr<tensorflow::GraphOptimizationPass>(new rewrite::ShieldPass),
      "BlockcellShieldPass");
  static tensorflow::optimization_registration::OptimizationPassRegistration registration(
      tensorflow::OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, 0,
      std::unique_ptr<tensorflow::GraphOptimizationPass>(new rewrite::RewritePass),
      "BlockcellRewritePass");
}

bool RewritesGraphs() {
  // The pass is registered while the library is loaded, so a later change must not show.
  static const bool wanted = rewrite::Wanted();
  return wanted;
}

std::vector<std::pair<const char*, std::size_t>> RewrittenNodes() {
  std::vector<std::pair<const char*, std::size_t>> nodes;
  for (const rewrite::Counter& counter : rewrite::counters) {
    nodes.emplace_back(counter.op, counter.nodes);
  }
  return nodes;
}

}  // namespace blockcell

// The graph passes that put ops of this library around the cells. What they do is decided in Rust.
//
// The pass that rewrites runs at the last point before a graph is cut into devices: after
// TensorFlow's own optimizers, which know nothing of our ops, and after pruning. There, what is fed
// and fetched are nodes of their own. A tensor that is fetched has a consumer, and one that is fed
// has no product before it, so neither is lost. At an earlier point a session has neither. A pass
// before the optimizers only shields the sums from them.

#include "cpp/graph_pass.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "blockcell/src/graphs.rs.h"
#include "cpp/devices.h"
#include "cpp/graphs.h"
#include "cpp/kernels.h"
#include "cpp/library.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"
#include "tensorflow/core/public/session_options.h"

namespace blockcell {
namespace {

namespace tf = ::tensorflow;

bool StartsRewrites(const tf::Graph& graph) {
  const auto nodes = graph.op_nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const tf::Node* node) {
    const std::string& op = node->type_string();
    return starts_rewrites({op.data(), op.size()});
  });
}

using Rewrite = Changes (*)(rust::Slice<const GraphNode>, rust::Slice<const GraphEdge>);

class RewritePass : public tf::GraphOptimizationPass {
 public:
  RewritePass(Rewrite rewrite, bool is_last) : rewrite_(rewrite), is_last_(is_last) {}

  tf::Status Run(const tf::GraphOptimizationPassOptions& options) override {
    if (options.graph == nullptr || *options.graph == nullptr) return tf::Status();
    tf::Graph* const graph = options.graph->get();
    if (!StartsRewrites(*graph)) return tf::Status();
    if (IsUnwanted(options.session_options)) {
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

 private:
  const Rewrite rewrite_;
  const bool is_last_;
};

}  // namespace

bool IsUnwanted(const tf::SessionOptions* options) {
  if (options == nullptr) return false;
  const auto& rewriter = options->config.graph_options().rewrite_options();
  for (const auto& optimizer : rewriter.custom_optimizers()) {
    const auto& parameters = optimizer.parameter_map();
    const auto rewrite = parameters.find("rewrite");
    if (optimizer.name() == "blockcell" && rewrite != parameters.end() && !rewrite->second.b()) {
      return true;
    }
  }
  return false;
}

void RegisterRewritePasses() {
  if (GetTakeover() == Takeover::kOff || !wants_rewrites()) return;
  using tf::optimization_registration::OptimizationPassRegistration;
  static OptimizationPassRegistration shield(
      tf::OptimizationPassRegistry::POST_PLACEMENT, 1,
      std::unique_ptr<tf::GraphOptimizationPass>(new RewritePass(shield_graph, false)),
      "BlockcellShieldPass");
  static OptimizationPassRegistration rewrite(
      tf::OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, 0,
      std::unique_ptr<tf::GraphOptimizationPass>(new RewritePass(rewrite_graph, true)),
      "BlockcellRewritePass");
}

}  // namespace blockcell

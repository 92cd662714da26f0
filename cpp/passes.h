// What all graph passes have in common.

#pragma once

#include <set>
#include <string>

#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/graph/graph.h"

namespace blockcell {

// A pass of this library. TensorFlow may call one without a graph; then it does nothing.
class Pass : public tensorflow::GraphOptimizationPass {
 public:
  using Options = tensorflow::GraphOptimizationPassOptions;

  tensorflow::Status Run(const Options& options) final;

 private:
  virtual tensorflow::Status RunOn(tensorflow::Graph* graph, const Options& options) = 0;
};

// Registers a pass, which TensorFlow owns from then on.
void Register(Pass* pass, const std::string& name,
              tensorflow::OptimizationPassRegistry::Grouping grouping, int phase);

// Whether the configuration of the pass's session has an optimizer of the name "blockcell" with the
// parameter "rewrite" set to false. TensorFlow itself ignores optimizers that it does not know.
bool IsUnwanted(const Pass::Options& options);

// The CPUs of this process. Another process may not have loaded the library.
class LocalCpus {
 public:
  // Of the devices that TensorFlow names to a graph pass; none if it names none.
  explicit LocalCpus(const tensorflow::DeviceSet* devices);

  // Whether a node that was placed on the device of this name is on one of them.
  bool Have(const std::string& device) const { return names_.count(device) > 0; }

 private:
  std::set<std::string> names_;
};

// Whether there are no other devices than CPUs of this process. A function may run on any of them.
bool AreLocalCpus(const tensorflow::DeviceSet* devices);

}  // namespace blockcell

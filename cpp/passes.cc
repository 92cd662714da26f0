#include "cpp/passes.h"

#include <memory>
#include <utility>

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"
#include "tensorflow/core/public/session_options.h"

namespace blockcell {

namespace tf = ::tensorflow;

tf::Status Pass::Run(const Options& options) {
  if (options.graph == nullptr || *options.graph == nullptr) return tf::Status();
  return RunOn(options.graph->get(), options);
}

void Register(Pass* pass, const std::string& name, tf::OptimizationPassRegistry::Grouping grouping,
              int phase) {
  pass->set_name(name);
  std::unique_ptr<tf::GraphOptimizationPass> owned(pass);
  tf::OptimizationPassRegistry::Global()->Register(grouping, phase, std::move(owned));
}

bool IsUnwanted(const Pass::Options& options) {
  if (options.session_options == nullptr) return false;
  const auto& rewriter = options.session_options->config.graph_options().rewrite_options();
  for (const auto& optimizer : rewriter.custom_optimizers()) {
    const auto& parameters = optimizer.parameter_map();
    const auto rewrite = parameters.find("rewrite");
    if (optimizer.name() == "blockcell" && rewrite != parameters.end() && !rewrite->second.b()) {
      return true;
    }
  }
  return false;
}

LocalCpus::LocalCpus(const tf::DeviceSet* devices) {
  if (devices == nullptr) return;
  for (const tf::Device* device : devices->devices()) {
    if (device->IsLocal() && device->device_type() == tf::DEVICE_CPU) {
      names_.insert(device->name());
    }
  }
}

bool AreLocalCpus(const tf::DeviceSet* devices) {
  if (devices == nullptr) return false;
  for (const tf::Device* device : devices->devices()) {
    const std::string& type = device->device_type();
    if (!device->IsLocal()) return false;
    if (type != tf::DEVICE_CPU && type.compare(0, 4, "XLA_") != 0) return false;
  }
  return true;
}

}  // namespace blockcell

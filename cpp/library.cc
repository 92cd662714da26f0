#include "cpp/library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "blockcell/src/bridge.rs.h"
#include "cpp/tensors.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/errors.h"

namespace blockcell {
namespace {

namespace tf = ::tensorflow;

int AppendName(dl_phdr_info* library, std::size_t, void* names) {
  static_cast<std::vector<std::string>*>(names)->push_back(library->dlpi_name);
  return 0;
}

// Takes the version from the first loaded TensorFlow library that tells it. Which one that is, and
// whether its symbols are visible from here, differs among releases and languages.
std::string FindVersion() {
  std::vector<std::string> names;
  dl_iterate_phdr(AppendName, &names);
  for (const std::string& name : names) {
    if (name.find("tensorflow") == std::string::npos) continue;
    void* const handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    using VersionFunction = const char* (*)();
    const auto tf_version = reinterpret_cast<VersionFunction>(dlsym(handle, "TF_Version"));
    const std::string version = tf_version == nullptr ? "" : tf_version();
    dlclose(handle);
    if (!version.empty()) return version;
  }
  return "";
}

// The version of the running TensorFlow, such as "2.21.0"; empty if no loaded library tells it.
const std::string& RunningTensorFlow() {
  static const std::string version = FindVersion();
  return version;
}

// "2.21" of "2.21.0".
std::string Minor(const std::string& version) {
  return version.substr(0, version.find('.', version.find('.') + 1));
}

// Whether TensorFlow loads an operation library at this moment, which shows by its watcher.
bool TensorFlowIsLoading() {
  tf::OpRegistry* const registry = tf::OpRegistry::Global();
  const auto ignore = [](const tf::Status& status, const tf::OpDef&) { return status; };
  if (!registry->SetWatcher(ignore).ok()) return true;
  registry->SetWatcher(nullptr).IgnoreError();
  return false;
}

// Makes `tf.load_op_library` fail with `message`: an operation that cannot be registered does that.
// Elsewhere such an operation would end the process.
void FailToLoad(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  if (!TensorFlowIsLoading()) return;
  tf::OpRegistry::Global()->Register([message](tf::OpRegistrationData*) -> tf::Status {
    return tf::errors::FailedPrecondition(message);
  });
}

// TensorFlow's C++ interface changes with every minor release.
bool BuiltForRunningTensorFlow() {
  const std::string built_for = BLOCKCELL_TENSORFLOW;
  const std::string& running = RunningTensorFlow();
  if (running.empty() || Minor(running) == Minor(built_for)) return true;
  FailToLoad("libblockcell.so was built for TensorFlow " + Minor(built_for) + ", but TensorFlow " +
             running + " is running: nothing was registered");
  return false;
}

// TensorFlow refuses every node that two kernels match.
bool IsFirst() {
  tf::OpRegistry* const registry = tf::OpRegistry::Global();
  const tf::OpRegistrationData* data = nullptr;
  const bool found = registry->LookUp("BlockcellInfo", &data).ok();
  // A look-up ends what a load begins with: that operations are registered when it ends. An
  // operation that is registered before then and fails ends the process.
  if (TensorFlowIsLoading()) registry->DeferRegistrations();
  if (found) {
    FailToLoad(
        "this process has already loaded libblockcell.so from another file: this copy registered "
        "nothing, and the first one remains in use");
  }
  return !found;
}

class BlockcellInfoOp : public tf::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(tf::OpKernelContext* context) override {
    tf::Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, tf::TensorShape({}), &output));
    output->scalar<tf::tstring>()() = StringOf(info(StrOf(RunningTensorFlow())));
  }
};

bool RegisterAll() {
  if (!BuiltForRunningTensorFlow() || !IsFirst()) return false;
  RegisterOwnOps();
  REGISTER_KERNEL_BUILDER(Name("BlockcellInfo").Device(tf::DEVICE_CPU), BlockcellInfoOp);
#ifdef BLOCKCELL_TENSORFLOW_1
  RegisterLabelPass();
#endif
  RegisterKernels();
  RegisterImplementationPass();
  RegisterRewritePasses();
  RegisterConstantsPass();
  return true;
}

const bool registered = RegisterAll();

}  // namespace

bool lists_gpus() {
  tf::DeviceFactory* const gpus = tf::DeviceFactory::GetFactory(tf::DEVICE_GPU);
  std::vector<std::string> devices;
  return gpus != nullptr && gpus->ListPhysicalDevices(&devices).ok() && !devices.empty();
}

}  // namespace blockcell

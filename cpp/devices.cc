#include "cpp/devices.h"

#include <unistd.h>

#include <vector>

#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace blockcell {

namespace tf = ::tensorflow;

namespace {

// Whether there is a file by which programs reach a GPU of NVIDIA, in WSL, or of AMD.
bool HasDriver() {
  for (const char* file : {"/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/kfd"}) {
    if (access(file, F_OK) == 0) return true;
  }
  return false;
}

}  // namespace

bool OnCpu(const std::string& device) {
  tf::DeviceNameUtils::ParsedName name;
  return tf::DeviceNameUtils::ParseFullName(device, &name) && name.has_type &&
         name.type == tf::DEVICE_CPU;
}

bool has_gpu() {
  tf::DeviceFactory* const gpus = tf::DeviceFactory::GetFactory(tf::DEVICE_GPU);
  // Without a driver, to ask for devices would print complaints.
  if (gpus == nullptr || !HasDriver()) return false;
  std::vector<std::string> devices;
  return gpus->ListPhysicalDevices(&devices).ok() && !devices.empty();
}

}  // namespace blockcell

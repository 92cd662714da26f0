#include "cpp/devices.h"

#include <unistd.h>

#include <vector>

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/framework/types.h"

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

LocalCpus::LocalCpus(const tf::DeviceSet* devices) {
  if (devices == nullptr) return;
  for (const tf::Device* device : devices->devices()) {
    if (device->IsLocal() && device->device_type() == tf::DEVICE_CPU) {
      names_.insert(device->name());
    }
  }
}

bool has_gpu() {
  tf::DeviceFactory* const gpus = tf::DeviceFactory::GetFactory(tf::DEVICE_GPU);
  // Without a driver, to ask for devices would print complaints.
  if (gpus == nullptr || !HasDriver()) return false;
  std::vector<std::string> devices;
  return gpus->ListPhysicalDevices(&devices).ok() && !devices.empty();
}

}  // namespace blockcell

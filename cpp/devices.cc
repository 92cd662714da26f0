#include "cpp/devices.h"

#include <vector>

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/framework/types.h"

namespace blockcell {

namespace tf = ::tensorflow;

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

bool lists_gpus() {
  tf::DeviceFactory* const gpus = tf::DeviceFactory::GetFactory(tf::DEVICE_GPU);
  std::vector<std::string> devices;
  return gpus != nullptr && gpus->ListPhysicalDevices(&devices).ok() && !devices.empty();
}

}  // namespace blockcell

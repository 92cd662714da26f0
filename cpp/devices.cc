#include "cpp/devices.h"

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/types.h"

namespace blockcell {

LocalCpus::LocalCpus(const tensorflow::DeviceSet* devices) {
  if (devices == nullptr) return;
  for (const tensorflow::Device* device : devices->devices()) {
    if (device->IsLocal() && device->device_type() == tensorflow::DEVICE_CPU) {
      names_.insert(device->name());
    }
  }
}

}  // namespace blockcell

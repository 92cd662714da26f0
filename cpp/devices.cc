#include "cpp/devices.h"

#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace blockcell {

namespace tf = ::tensorflow;

bool OnCpu(const std::string& device) {
  tf::DeviceNameUtils::ParsedName name;
  return tf::DeviceNameUtils::ParseFullName(device, &name) && name.has_type &&
         name.type == tf::DEVICE_CPU;
}

}  // namespace blockcell

// Devices that this library serves.

#ifndef BLOCKCELL_CPP_DEVICES_H_
#define BLOCKCELL_CPP_DEVICES_H_

#include <set>
#include <string>

#include "tensorflow/core/common_runtime/device_set.h"

namespace blockcell {

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

// Whether TensorFlow finds a GPU for this process: not one that CUDA_VISIBLE_DEVICES hides. It
// makes no device, but may print complaints where there is no driver.
bool lists_gpus();

}  // namespace blockcell

#endif  // BLOCKCELL_CPP_DEVICES_H_

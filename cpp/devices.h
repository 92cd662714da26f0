// Questions about TensorFlow's devices.

#ifndef BLOCKCELL_CPP_DEVICES_H_
#define BLOCKCELL_CPP_DEVICES_H_

#include <string>

namespace blockcell {

// Whether the full name of a device is that of a CPU.
bool OnCpu(const std::string& device);

// Whether TensorFlow has a GPU in this process: not one that CUDA_VISIBLE_DEVICES hides. Makes no
// device.
bool has_gpu();

}  // namespace blockcell

#endif  // BLOCKCELL_CPP_DEVICES_H_

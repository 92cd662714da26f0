#include "cpp/variables.h"

#include <utility>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace blockcell {

namespace tf = ::tensorflow;

HeldTensor::HeldTensor(std::unique_ptr<tf::Tensor> tensor) : tensor_(std::move(tensor)) {}

HeldTensor::~HeldTensor() = default;

bool HeldTensor::is_last() const {
  return tf::DMAHelper::buffer(tensor_.get())->root_buffer()->RefCountIsOne();
}

Tensors::Tensors(tf::OpKernelContext* context) : context_(context) {}

std::unique_ptr<HeldTensor> Tensors::hold(std::size_t input) const {
  std::unique_ptr<tf::Tensor> tensor(new tf::Tensor(context_->input(static_cast<int>(input))));
  tf::TensorBuffer* const buffer = tf::DMAHelper::buffer(tensor.get());
  const bool owned =
      buffer != nullptr && buffer->OwnsMemory() && buffer->root_buffer()->OwnsMemory();
  return std::unique_ptr<HeldTensor>(owned ? new HeldTensor(std::move(tensor)) : nullptr);
}

}  // namespace blockcell

// The kernel class of every operation, and its registrations.
//
// A kernel unpacks tensors and hands them to Rust, which knows the operations' shapes and
// equations. Rust relies on it that no two tensors of a call overlap, and LSTMBlockCellGrad reads
// inputs after it wrote outputs. So an output has an input's buffer only where Rust says so. Rust
// works on some inputs in place: the kernel takes over their buffers, or copies them. Neither is
// passed as an input then.

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "blockcell/src/bridge.rs.h"
#include "cpp/attributes.h"
#include "cpp/library.h"
#include "cpp/pool.h"
#include "cpp/tensors.h"
#include "cpp/variables.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace blockcell {
namespace {

namespace tf = ::tensorflow;

// Gives `taken` the buffer of an input if nobody else holds it, otherwise a copy.
tf::Status Take(tf::OpKernelContext* context, int index, tf::Tensor* taken) {
  const tf::Tensor& input = context->input(index);
  const std::unique_ptr<tf::Tensor> forwarded = context->forward_input(
      index, tf::OpKernelContext::Params::kNoReservation, input.dtype(), input.shape(),
      context->input_memory_type(index), context->input_alloc_attr(index));
  if (forwarded != nullptr) {
    *taken = *forwarded;
    return tf::Status();
  }
  TF_RETURN_IF_ERROR(context->allocate_temp(input.dtype(), input.shape(), taken));
  const auto from = BytesOf(input);
  if (!from.empty()) std::memcpy(MutableBytesOf(taken).data(), from.data(), from.size());
  return tf::Status();
}

class BlockcellOp : public tf::OpKernel {
 public:
  explicit BlockcellOp(tf::OpKernelConstruction* context)
      : OpKernel(context), kernel_(MakeKernel(context)) {
    OP_REQUIRES_OK(context, ToTensorFlow(kernel_->status()));
    for (const std::size_t index : kernel_->in_place()) in_place_.push_back(index);
  }

  void Compute(tf::OpKernelContext* context) override {
    std::vector<std::size_t> sizes;
    std::vector<Input> inputs = InputsOf(context, &sizes);
    const auto all_inputs = SliceOf(inputs);
    const std::size_t count = context->num_outputs();
    const std::unique_ptr<bool[]> is_read(new bool[count]);
    for (std::size_t i = 0; i < count; ++i) is_read[i] = context->output_required(i);
    std::vector<Shape> shapes(count);
    Plan plan{};
    OP_REQUIRES_OK(context, ToTensorFlow(kernel_->plan(all_inputs, {is_read.get(), count},
                                                       SliceOf(&shapes), plan)));

    std::vector<tf::Tensor> taken(in_place_.size());
    std::vector<Output> in_place;
    in_place.reserve(taken.size());
    for (std::size_t i = 0; i < taken.size(); ++i) {
      OP_REQUIRES_OK(context, Take(context, in_place_[i], &taken[i]));
      Input& input = inputs[in_place_[i]];
      in_place.push_back({input.dims, MutableBytesOf(&taken[i])});
      input.data = {};
    }

    tf::Tensor* first = nullptr;
    const bool forwarded =
        plan.forward_input >= 0 && context->forward_input_to_output_with_shape(
                                       plan.forward_input, 0, TensorShapeOf(shapes[0]), &first);
    if (forwarded) inputs[plan.forward_input].data = {};
    std::vector<Output> outputs;
    outputs.reserve(count);
    std::vector<tf::Tensor> unread(count);
    for (std::size_t i = 0; i < count; ++i) {
      tf::Tensor* tensor = i == 0 ? first : nullptr;
      if (tensor == nullptr && is_read[i]) {
        OP_REQUIRES_OK(context, context->allocate_output(i, TensorShapeOf(shapes[i]), &tensor));
      } else if (tensor == nullptr) {
        tensor = &unread[i];
        OP_REQUIRES_OK(context,
                       context->allocate_temp(output_type(i), TensorShapeOf(shapes[i]), tensor));
      }
      outputs.push_back({SizesOf(shapes[i]), MutableBytesOf(tensor)});
    }

    tf::Tensor scratch;
    if (plan.scratch > 0) {
      const tf::TensorShape length({static_cast<std::int64_t>(plan.scratch)});
      OP_REQUIRES_OK(context, context->allocate_temp(tf::DT_FLOAT, length, &scratch));
    }
    const rust::Slice<float> all_scratch(scratch.flat<float>().data(), plan.scratch);

    const Pool pool(context->device()->tensorflow_cpu_worker_threads()->workers);
    OP_REQUIRES_OK(context, ToTensorFlow(kernel_->compute(pool, Tensors(context), all_inputs,
                                                          SliceOf(&in_place), SliceOf(&outputs),
                                                          forwarded, all_scratch)));
  }

 private:
  static rust::Box<Kernel> MakeKernel(tf::OpKernelConstruction* context) {
    return make_kernel(StrOf(context->def().op()), StrOf(context->def().name()),
                       NodeAttributes(context));
  }

  const rust::Box<Kernel> kernel_;
  std::vector<int> in_place_;
};

tf::OpKernel* Create(tf::OpKernelConstruction* context) { return new BlockcellOp(context); }

void Register(tf::KernelDefBuilder& builder, tf::DataType type) {
  builder.Device(tf::DEVICE_CPU).TypeConstraint("T", type);
  tf::kernel_factory::OpKernelRegistrar(builder.Build(), "BlockcellOp", Create);
}

void Register(const OpInfo& op, tf::DataType type) {
  const std::string name = StringOf(op.name);
  if (!op.is_stock) {
    tf::KernelDefBuilder only(name.c_str());
    Register(only, type);
    return;
  }
  tf::KernelDefBuilder labelled(name.c_str());
  Register(labelled.Label(kLabel), type);
#ifndef BLOCKCELL_TENSORFLOW_1
  if (!overrides()) return;
  tf::KernelDefBuilder preferred(name.c_str());
  Register(preferred.Priority(1), type);
#endif
}

}  // namespace

void RegisterKernels() {
  for (const OpInfo& op : operations()) {
    for (const std::int32_t type : op.types) Register(op, static_cast<tf::DataType>(type));
  }
}

}  // namespace blockcell

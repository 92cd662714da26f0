// The kernel class of every operation, and its registrations.
//
// A kernel unpacks tensors and hands them to Rust, which knows the operations' shapes and
// equations. It never forwards an input's buffer to an output: Rust may take it that no two
// tensors of a call overlap, and LSTMBlockCellGrad needs its inputs after it wrote outputs.

#include "cpp/kernels.h"

#include <string>
#include <vector>

#include "blockcell/src/bridge.rs.h"
#include "cpp/pool.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/lib/core/errors.h"

namespace blockcell {
namespace {

namespace tf = ::tensorflow;

tf::Status ToTensorFlow(const Status& status) {
  const std::string message(status.message.data(), status.message.size());
  switch (status.code) {
    case Code::Ok:
      return tf::Status();
    case Code::InvalidArgument:
      return tf::errors::InvalidArgument(message);
    default:
      return tf::errors::Internal(message);
  }
}

// Appends the shape of `tensor` to `dims`, which has room for it, and returns where it lies.
rust::Slice<const std::size_t> Append(const tf::Tensor& tensor, std::vector<std::size_t>* dims) {
  for (int axis = 0; axis < tensor.dims(); ++axis) dims->push_back(tensor.dim_size(axis));
  return {dims->data() + dims->size() - tensor.dims(), static_cast<std::size_t>(tensor.dims())};
}

rust::Slice<const std::uint8_t> BytesOf(const tf::Tensor& tensor) {
  const auto bytes = tensor.tensor_data();
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

rust::Slice<std::uint8_t> MutableBytesOf(tf::Tensor* tensor) {
  const auto bytes = tensor->tensor_data();
  return {reinterpret_cast<std::uint8_t*>(const_cast<char*>(bytes.data())), bytes.size()};
}

class BlockcellOp : public tf::OpKernel {
 public:
  explicit BlockcellOp(tf::OpKernelConstruction* context)
      : OpKernel(context), op_(context->def().op()) {
    tf::DataType type;
    OP_REQUIRES_OK(context, context->GetAttr("T", &type));
    attributes_.half = type == tf::DT_HALF;
    attributes_.use_peephole = false;
    if (context->HasAttr("use_peephole")) {
      OP_REQUIRES_OK(context, context->GetAttr("use_peephole", &attributes_.use_peephole));
    }
  }

  void Compute(tf::OpKernelContext* context) override {
    const rust::Str op(op_.data(), op_.size());
    std::vector<Shape> shapes(context->num_outputs());
    std::size_t ranks = shapes.size() * Shape().dims.size();
    for (int i = 0; i < context->num_inputs(); ++i) ranks += context->input(i).dims();
    std::vector<std::size_t> dims;  // What the slices of `inputs` and `outputs` point into.
    dims.reserve(ranks);

    std::vector<Input> inputs;
    inputs.reserve(context->num_inputs());
    for (int i = 0; i < context->num_inputs(); ++i) {
      const tf::Tensor& tensor = context->input(i);
      inputs.push_back({Append(tensor, &dims), BytesOf(tensor)});
    }
    const rust::Slice<const Input> all_inputs(inputs.data(), inputs.size());

    const rust::Slice<Shape> all_shapes(shapes.data(), shapes.size());
    OP_REQUIRES_OK(context, ToTensorFlow(plan(op, attributes_, all_inputs, all_shapes)));

    std::vector<Output> outputs;
    outputs.reserve(context->num_outputs());
    for (int i = 0; i < context->num_outputs(); ++i) {
      tf::TensorShape shape;
      for (std::size_t axis = 0; axis < shapes[i].rank; ++axis) shape.AddDim(shapes[i].dims[axis]);
      tf::Tensor* tensor = nullptr;
      OP_REQUIRES_OK(context, context->allocate_output(i, shape, &tensor));
      outputs.push_back({Append(*tensor, &dims), MutableBytesOf(tensor)});
    }
    const rust::Slice<Output> all_outputs(outputs.data(), outputs.size());

    const Pool pool(context);
    OP_REQUIRES_OK(context, ToTensorFlow(compute(op, attributes_, pool, all_inputs, all_outputs)));
  }

 private:
  const std::string op_;
  Attributes attributes_;
};

tf::OpKernel* Create(tf::OpKernelConstruction* context) { return new BlockcellOp(context); }

void Register(tf::KernelDefBuilder& builder, tf::DataType type) {
  builder.Device(tf::DEVICE_CPU).TypeConstraint("T", type);
  tf::kernel_factory::OpKernelRegistrar(builder.Build(), "BlockcellOp", Create);
}

void RegisterBoth(const std::string& op, tf::DataType type) {
  tf::KernelDefBuilder labelled(op.c_str());
  Register(labelled.Label(kLabel), type);
  if (GetTakeover() == Takeover::kPriority) {
    tf::KernelDefBuilder preferred(op.c_str());
    Register(preferred.Priority(1), type);
  }
}

bool RegisterAll() {
  for (const OpInfo& op : operations()) {
    const std::string name(op.name.data(), op.name.size());
    RegisterBoth(name, tf::DT_FLOAT);
    if (op.half) RegisterBoth(name, tf::DT_HALF);
  }
  return true;
}

const bool registered = RegisterAll();

}  // namespace
}  // namespace blockcell

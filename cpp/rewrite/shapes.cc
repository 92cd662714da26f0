#include "cpp/rewrite/shapes.h"

#include <map>
#include <vector>

#include "cpp/rewrite/products.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace blockcell {
namespace rewrite {
namespace {

// Either the sizes are known, or a tensor that has the same shape: at worst the tensor itself.
struct Shape {
  bool has_sizes;
  std::vector<std::int64_t> sizes;
  Output like;
};

bool operator==(const Shape& left, const Shape& right) {
  if (left.has_sizes || right.has_sizes) {
    return left.has_sizes && right.has_sizes && left.sizes == right.sizes;
  }
  return left.like == right.like;
}

// Infers shapes on the way back from a tensor.
//
// TensorFlow's own inference knows nothing of what comes from the stacks of a loop's gradient.
// Here the rules of the cells help: their kernels check that the gradient of the weights, as the
// product of x and h_prev with the gates' gradient, has the shape of the weights.
class Inference {
 public:
  Shape Of(Output tensor) {
    // A graph can have as many ways back as it likes.
    if (++steps_ > kMostSteps) return Like(tensor);
    const tf::Node* const node = tensor.node;
    if (Is(node, "Const")) return OfConstant(tensor);
    if (Is(node, "VariableV2") || Is(node, "Variable") || Is(node, "VarHandleOp")) {
      return OfAttribute(tensor);
    }
    if (Is(node, "Fill")) return OfFill(tensor);
    if (Is(node, "Merge")) return OfMerge(tensor);
    if (Is(node, "AddN") || Is(node, "Add") || Is(node, "AddV2")) return OfSum(tensor);
    const std::vector<Output> inputs = InputsOf(node);
    if (Is(node, "Identity") || Is(node, "Enter") || Is(node, "RefEnter") || Is(node, "Switch") ||
        Is(node, "RefSwitch") || Is(node, "ZerosLike")) {
      return Of(inputs[0]);
    }
    if (Is(node, "ReadVariableOp") || Is(node, "NextIteration") || Is(node, "Exit")) {
      // The tensor before these may be another one at another time.
      const Shape before = Of(inputs[0]);
      return before.has_sizes ? before : Like(tensor);
    }
    Output parameter;
    if (GradientOf(tensor, &parameter)) return Of(parameter);
    return Like(tensor);
  }

 private:
  static constexpr int kMostSteps = 10000;

  static Shape Like(Output tensor) { return {false, {}, tensor}; }

  template <typename TensorShape>
  static Shape OfSizes(Output tensor, const TensorShape& shape) {
    if (!shape.IsFullyDefined()) return Like(tensor);
    std::vector<std::int64_t> sizes;
    for (int axis = 0; axis < shape.dims(); ++axis) sizes.push_back(shape.dim_size(axis));
    return {true, sizes, tensor};
  }

  static Shape OfConstant(Output tensor) {
    tf::Tensor value;
    if (!tf::GetNodeAttr(tensor.node->attrs(), "value", &value).ok()) return Like(tensor);
    return OfSizes(tensor, value.shape());
  }

  // Of a variable. A value of another shape is an error of the graph, and TensorFlow's optimizers
  // rely on the attribute, too.
  static Shape OfAttribute(Output tensor) {
    tf::PartialTensorShape shape;
    if (!tf::GetNodeAttr(tensor.node->attrs(), "shape", &shape).ok()) return Like(tensor);
    // Old graphs say "no dimensions" for "not known".
    if (Is(tensor.node, "Variable") && shape.dims() == 0) return Like(tensor);
    return OfSizes(tensor, shape);
  }

  static Shape OfFill(Output tensor) {
    std::vector<std::int64_t> sizes;
    if (!ReadConstant(InputsOf(tensor.node)[0], &sizes)) return Like(tensor);
    return {true, sizes, tensor};
  }

  // AddN refuses summands of different shapes, Add may broadcast them.
  Shape OfSum(Output tensor) {
    const std::vector<Output> inputs = InputsOf(tensor.node);
    const Shape first = Of(inputs[0]);
    if (Is(tensor.node, "AddN")) {
      for (std::size_t i = 1; !first.has_sizes && i < inputs.size(); ++i) {
        const Shape shape = Of(inputs[i]);
        if (shape.has_sizes) return shape;
      }
      return first;
    }
    return first == Of(inputs[1]) ? first : Like(tensor);
  }

  // By induction over the rounds of a loop: every input has the shape of the first one, if those
  // that come from the round before have it whenever this node had it in that round.
  Shape OfMerge(Output tensor) {
    if (tensor.index != 0) return Like(tensor);
    const auto assumed = assumed_.find(tensor.node);
    if (assumed != assumed_.end()) return assumed->second;
    std::vector<Output> first, again;
    for (const Output& input : InputsOf(tensor.node)) {
      (Is(input.node, "NextIteration") ? again : first).push_back(input);
    }
    if (first.empty()) return Like(tensor);
    const Shape shape = Of(first[0]);
    if (!shape.has_sizes) return Like(tensor);
    assumed_[tensor.node] = shape;
    bool same = true;
    for (std::size_t i = 1; same && i < first.size(); ++i) same = Of(first[i]) == shape;
    for (std::size_t i = 0; same && i < again.size(); ++i) same = Of(again[i]) == shape;
    assumed_.erase(tensor.node);
    return same ? shape : Like(tensor);
  }

  int steps_ = 0;
  std::map<const tf::Node*, Shape> assumed_;
};

}  // namespace

bool SameShape(Output left, Output right) { return Inference().Of(left) == Inference().Of(right); }

}  // namespace rewrite
}  // namespace blockcell

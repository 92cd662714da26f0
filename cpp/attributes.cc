#include "cpp/attributes.h"

#include <string>
#include <vector>

#include "blockcell/src/bridge.rs.h"
#include "cpp/tensors.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/graph/graph.h"

namespace blockcell {
namespace {

namespace tf = ::tensorflow;

// `Context` is what has a node's attributes: TensorFlow gives them by a function of the same name.
template <typename T, typename Context>
T Fetch(const Context& context, const std::string& name, bool* found) {
  T value{};
  *found = context.GetAttr(name, &value).ok();
  return value;
}

template <typename Context>
AttributeValue Get(const Context& context, const std::string& name, AttributeKind kind) {
  AttributeValue value{};
  bool* const found = &value.found;
  switch (kind) {
    case AttributeKind::Bool:
      value.flag = Fetch<bool>(context, name, found);
      break;
    case AttributeKind::Int:
      value.number = Fetch<tf::int64>(context, name, found);
      break;
    case AttributeKind::Float:
      value.real = Fetch<float>(context, name, found);
      break;
    case AttributeKind::String: {
      const auto text = Fetch<std::string>(context, name, found);
      value.text = rust::String::lossy(text.data(), text.size());
      break;
    }
    case AttributeKind::Type:
      value.number = Fetch<tf::DataType>(context, name, found);
      break;
    case AttributeKind::Ints:
      for (const tf::int64 number : Fetch<std::vector<tf::int64>>(context, name, found)) {
        value.numbers.push_back(number);
      }
      break;
  }
  return value;
}

template <typename Context>
auto Getter(const Context* context) {
  return
      [context](const std::string& name, AttributeKind kind) { return Get(*context, name, kind); };
}

// A node of a graph as `Fetch` takes it.
struct OfNode {
  const tf::Node* node;

  template <typename T>
  tf::Status GetAttr(const std::string& name, T* value) const {
    return tf::GetNodeAttr(node->attrs(), name, value);
  }
};

}  // namespace

NodeAttributes::NodeAttributes(tf::OpKernelConstruction* context) : get_(Getter(context)) {}

NodeAttributes::NodeAttributes(const tf::Node* node)
    : get_([node](const std::string& name, AttributeKind kind) {
        return Get(OfNode{node}, name, kind);
      }) {}

NodeAttributes::NodeAttributes(tf::shape_inference::InferenceContext* context)
    : get_(Getter(context)) {}

AttributeValue NodeAttributes::get(rust::Str name, AttributeKind kind) const {
  return get_(StringOf(name), kind);
}

}  // namespace blockcell

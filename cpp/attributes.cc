#include "cpp/attributes.h"

#include <string>
#include <vector>

#include "blockcell/src/bridge.rs.h"
#include "cpp/tensors.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace blockcell {
namespace {

namespace tf = ::tensorflow;

// What has a node's attributes differs, but all have the same function `GetAttr`.
template <typename Context>
AttributeValue Get(const Context& context, const std::string& name, AttributeKind kind) {
  AttributeValue value{};
  const auto fetch = [&](auto* to) { value.found = context.GetAttr(name, to).ok(); };
  switch (kind) {
    case AttributeKind::Bool:
      fetch(&value.flag);
      break;
    case AttributeKind::Int: {
      tf::int64 number = 0;  // It is another type than std::int64_t in some releases.
      fetch(&number);
      value.number = number;
      break;
    }
    case AttributeKind::Float:
      fetch(&value.real);
      break;
    case AttributeKind::String: {
      std::string text;
      fetch(&text);
      value.text = rust::String::lossy(text.data(), text.size());
      break;
    }
    case AttributeKind::Type: {
      tf::DataType type = tf::DT_INVALID;
      fetch(&type);
      value.number = type;
      break;
    }
    case AttributeKind::Ints: {
      std::vector<tf::int64> numbers;
      fetch(&numbers);
      for (const tf::int64 number : numbers) value.numbers.push_back(number);
      break;
    }
  }
  return value;
}

}  // namespace

NodeAttributes::NodeAttributes(tf::OpKernelConstruction* context)
    : get_([context](const std::string& name, AttributeKind kind) {
        return Get(*context, name, kind);
      }) {}

NodeAttributes::NodeAttributes(tf::shape_inference::InferenceContext* context)
    : get_([context](const std::string& name, AttributeKind kind) {
        return Get(*context, name, kind);
      }) {}

AttributeValue NodeAttributes::get(rust::Str name, AttributeKind kind) const {
  return get_(StringOf(name), kind);
}

}  // namespace blockcell

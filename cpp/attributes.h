// The attributes of nodes, as the Rust side sees them.

#pragma once

#include <functional>
#include <string>

#include "rust/cxx.h"

namespace tensorflow {
class Node;
class OpKernelConstruction;
namespace shape_inference {
class InferenceContext;
}  // namespace shape_inference
}  // namespace tensorflow

namespace blockcell {

struct AttributeValue;
enum class AttributeKind : std::uint8_t;

// The attributes of one node, as long as what it is made from.
class NodeAttributes {
 public:
  explicit NodeAttributes(tensorflow::OpKernelConstruction* context);
  explicit NodeAttributes(tensorflow::shape_inference::InferenceContext* context);
  explicit NodeAttributes(const tensorflow::Node* node);

  AttributeValue get(rust::Str name, AttributeKind kind) const;

 private:
  std::function<AttributeValue(const std::string&, AttributeKind)> get_;
};

}  // namespace blockcell

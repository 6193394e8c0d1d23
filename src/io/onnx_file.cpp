#include "io/onnx_file.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "netcl/version.h"

namespace netcl::io_detail {
namespace {

// Numbers of onnx.proto's fields and enums, by message.
namespace model {
constexpr int kIrVersion = 1, kProducer = 2, kProducerVersion = 3, kGraph = 7, kOpset = 8,
              kMetadata = 14;
}
namespace graph {
constexpr int kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
}
namespace node_field {
constexpr int kInput = 1, kOutput = 2, kName = 3, kOp = 4, kAttribute = 5;
}
namespace attribute {
constexpr int kName = 1, kReal = 2, kInteger = 3, kText = 4, kIntegers = 8, kType = 20;
constexpr int kIsReal = 1, kIsInteger = 2, kIsText = 3, kIsIntegers = 7;
}  // namespace attribute
namespace tensor_field {
constexpr int kSizes = 1, kType = 2, kName = 8, kData = 9;
}

// The newest version with which readers of some years ago can deal, and its set of operators.
constexpr std::int64_t kIr = 8, kOperators = 17;
constexpr std::size_t kMostBytes = INT32_MAX;  // of a protobuf message

Message attribute_message(const std::string& name, const OnnxValue& value) {
  Message result;
  result.text(attribute::kName, name);
  int type = 0;
  if (const auto* real = std::get_if<double>(&value)) {
    result.real(attribute::kReal, static_cast<float>(*real));
    type = attribute::kIsReal;
  } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    result.integer(attribute::kInteger, *integer);
    type = attribute::kIsInteger;
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    result.text(attribute::kText, *text);
    type = attribute::kIsText;
  } else {
    for (const auto one : std::get<std::vector<std::int64_t>>(value))
      result.integer(attribute::kIntegers, one);
    type = attribute::kIsIntegers;
  }
  return result.integer(attribute::kType, type);
}

// ValueInfoProto { name, TypeProto { tensor_type { elem_type, shape { dim... } } } }
Message value_info(const std::string& name, OnnxType type, const std::vector<std::int64_t>& sizes) {
  Message shape;
  for (const auto size : sizes) {
    Message axis;
    size < 0 ? axis.text(2, "N") : axis.integer(1, size);
    shape.message(1, axis);
  }
  Message tensor;
  tensor.integer(1, static_cast<int>(type)).message(2, shape);
  return Message().text(1, name).message(2, Message().message(1, tensor));
}

}  // namespace

void Message::varint(std::uint64_t value) {
  for (; value >= 128; value >>= 7) bytes_ += static_cast<char>((value & 127) | 128);
  bytes_ += static_cast<char>(value);
}

Message& Message::integer(int field, std::int64_t value) {
  varint(static_cast<std::uint64_t>(field) << 3);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

Message& Message::real(int field, float value) {
  static_assert(std::endian::native == std::endian::little);
  varint(static_cast<std::uint64_t>(field) << 3 | 5);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  bytes_.append(bytes, sizeof value);
  return *this;
}

Message& Message::text(int field, std::string_view value) {
  varint(static_cast<std::uint64_t>(field) << 3 | 2);
  varint(value.size());
  bytes_ += value;
  return *this;
}

void OnnxGraph::input(const std::string& name, OnnxType type,
                      const std::vector<std::int64_t>& sizes) {
  inputs_.message(graph::kInput, value_info(name, type, sizes));
}

void OnnxGraph::output(const std::string& name, OnnxType type,
                       const std::vector<std::int64_t>& sizes) {
  outputs_.message(graph::kOutput, value_info(name, type, sizes));
}

std::string OnnxGraph::tensor(const std::string& name, OnnxType type, const Shape& shape,
                              std::string_view data) {
  Message message;
  for (const auto size : shape.sizes()) message.integer(tensor_field::kSizes, size);
  message.integer(tensor_field::kType, static_cast<int>(type));
  message.text(tensor_field::kName, name).text(tensor_field::kData, data);
  check<ArgumentError>(initializers_.bytes().size() + message.bytes().size() < kMostBytes,
                       "[onnx] a file may have {} bytes, and the weights need more", kMostBytes);
  initializers_.message(graph::kInitializer, message);
  return name;
}

std::string OnnxGraph::constant(const std::string& name, const Shape& shape,
                                std::span<const float> values) {
  return tensor(name, OnnxType::float32, shape,
                {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

std::string OnnxGraph::constant(const std::string& name, const std::vector<std::int64_t>& values) {
  return tensor(name, OnnxType::int64, Shape{static_cast<std::int64_t>(values.size())},
                {reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]});
}

std::string OnnxGraph::scalar(float value) {
  return constant("constant" + std::to_string(names_++), Shape{}, {&value, 1});
}

std::string OnnxGraph::node(const std::string& op, const std::vector<std::string>& inputs,
                            const OnnxAttributes& attributes, const std::string& result) {
  const auto number = std::to_string(names_++);
  const auto name = result.empty() ? "t" + number : result;
  Message message;
  for (const auto& one : inputs) message.text(node_field::kInput, one);
  message.text(node_field::kOutput, name).text(node_field::kName, op + number);
  message.text(node_field::kOp, op);
  for (const auto& [key, value] : attributes)
    message.message(node_field::kAttribute, attribute_message(key, value));
  nodes_.message(graph::kNode, message);
  return name;
}

void OnnxGraph::metadata(const std::string& key, const std::string& value) {
  metadata_.message(model::kMetadata, Message().text(1, key).text(2, value));
}

std::string OnnxGraph::bytes() const {
  Message opset;
  opset.text(1, "").integer(2, kOperators);
  // A message is its fields one after the other, so parts that were made apart can be joined.
  const auto graph_bytes = nodes_.bytes() + Message().text(graph::kName, "netcl").bytes() +
                           initializers_.bytes() + inputs_.bytes() + outputs_.bytes();
  check<ArgumentError>(graph_bytes.size() < kMostBytes,
                       "[onnx] a file may have {} bytes, and the graph needs more", kMostBytes);
  Message file;
  file.integer(model::kIrVersion, kIr).text(model::kProducer, "netcl");
  file.text(model::kProducerVersion, NETCL_VERSION).text(model::kGraph, graph_bytes);
  file.message(model::kOpset, opset);
  return file.bytes() + metadata_.bytes();
}

}  // namespace netcl::io_detail

// The file format of ONNX: a graph of nodes in protobuf's wire format, of which only writing is
// needed. Knows nothing of layers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "netcl/shape.h"

namespace netcl::io_detail {

// Fields of one protobuf message, in the order of the calls.
class Message {
 public:
  Message& integer(int field, std::int64_t value);
  Message& real(int field, float value);
  Message& text(int field, std::string_view value);
  Message& message(int field, const Message& value) { return text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value);
  std::string bytes_;
};

enum class OnnxType { float32 = 1, uint8 = 2, int64 = 7 };

using OnnxValue = std::variant<std::int64_t, double, std::vector<std::int64_t>, std::string>;
using OnnxAttributes = std::vector<std::pair<std::string, OnnxValue>>;

class OnnxGraph {
 public:
  // An axis of size -1 is the batch, whose size is left open.
  void input(const std::string& name, OnnxType type, const std::vector<std::int64_t>& sizes);
  void output(const std::string& name, OnnxType type, const std::vector<std::int64_t>& sizes);
  // Constants; the name that nodes use is returned.
  std::string constant(const std::string& name, const Shape& shape, std::span<const float> values);
  std::string constant(const std::string& name, const std::vector<std::int64_t>& values);
  std::string scalar(float value);
  // One result, whose name is returned.
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const OnnxAttributes& attributes = {}, const std::string& result = {});
  void metadata(const std::string& key, const std::string& value);

  // The whole file. ArgumentError when it would be larger than protobuf allows.
  std::string bytes() const;

 private:
  std::string tensor(const std::string& name, OnnxType type, const Shape& shape,
                     std::string_view data);
  Message nodes_, initializers_, inputs_, outputs_, metadata_;
  std::int64_t names_ = 0;
};

}  // namespace netcl::io_detail

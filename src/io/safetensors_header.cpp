// The header is read as a stream of events instead of a document: a hostile one is refused at the
// first thing that does not belong there, before it costs memory.
#include "io/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/check.h"
#include "io/array_bytes.h"
#include "io/quote.h"

namespace netcl::io_detail {
namespace {

using nlohmann::json;
using Entry = io::SafetensorsFile::Entry;

constexpr std::string_view kMetadata = "__metadata__";
constexpr std::size_t kMaxRank = 64;

constexpr std::pair<DType, std::string_view> kDTypeNames[] = {
    {DType::boolean, "BOOL"},  {DType::uint8, "U8"},    {DType::int8, "I8"},
    {DType::int32, "I32"},     {DType::int64, "I64"},   {DType::float16, "F16"},
    {DType::bfloat16, "BF16"}, {DType::float32, "F32"}, {DType::float64, "F64"},
};

std::string_view format_name(DType dtype) {
  const auto* row = std::find_if(std::begin(kDTypeNames), std::end(kDTypeNames),
                                 [&](const auto& pair) { return pair.first == dtype; });
  return row->second;
}

DType dtype_named(const std::string& tensor, const std::string& name) {
  for (const auto& [dtype, known] : kDTypeNames)
    if (known == name) return dtype;
  fail<FormatError>(
      "tensor {}: the dtype must be one of BOOL, U8, I8, I32, I64, F16, BF16, F32, "
      "F64: {}",
      quote(tensor), quote(name));
}

// What one tensor's object said.
struct Draft {
  std::optional<DType> dtype;
  std::optional<std::vector<std::int64_t>> shape;
  std::optional<std::vector<std::int64_t>> offsets;
};

class HeaderReader : public json::json_sax_t {
 public:
  SafetensorsHeader header;

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_float(double, const std::string& text) override {
    return unexpected("the number " + text.substr(0, 40));
  }
  bool binary(json::binary_t&) override { return unexpected("binary data"); }
  bool number_integer(std::int64_t value) override {  // the parser uses it for negative numbers
    return unexpected("the number " + std::to_string(value));
  }

  bool number_unsigned(std::uint64_t value) override {
    if (list_ == nullptr) return unexpected("the number " + std::to_string(value));
    check<FormatError>(value <= INT64_MAX, "tensor {}: \"{}\" must fit in 63 bits: {}",
                       quote(name_), field_, value);
    check<FormatError>(list_->size() < kMaxRank, "tensor {}: \"{}\" may have {} numbers: more",
                       quote(name_), field_, kMaxRank);
    list_->push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(std::string& value) override {
    if (level_ == Level::metadata) {
      check<FormatError>(header.metadata.emplace(field_, value).second,
                         "a name may appear once in {}: {}", kMetadata, quote(field_));
    } else if (level_ == Level::tensor && list_ == nullptr && field_ == "dtype") {
      draft_.dtype = dtype_named(name_, value);
    } else {
      return unexpected("the text " + quote(value));
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (level_ == Level::outside)
      level_ = Level::names;
    else if (level_ == Level::names)
      level_ = name_ == kMetadata ? Level::metadata : Level::tensor;
    else
      return unexpected("an object");
    draft_ = {};
    return true;
  }

  bool key(std::string& text) override {
    if (level_ == Level::names) {
      check<FormatError>(text == kMetadata ? !had_metadata_ : !header.entries.contains(text),
                         "a name may appear once: {}", quote(text));
      name_ = text;
    } else {
      field_ = text;
      if (level_ == Level::tensor) check_field();
    }
    return true;
  }

  bool end_object() override {
    if (level_ == Level::tensor) finish_tensor();
    if (level_ == Level::metadata) had_metadata_ = true;
    level_ = level_ == Level::names ? Level::outside : Level::names;
    return true;
  }

  bool start_array(std::size_t) override {
    if (level_ != Level::tensor || list_ != nullptr || field_ == "dtype")
      return unexpected("a list");
    auto& list = field_ == "shape" ? draft_.shape : draft_.offsets;
    list_ = &list.emplace();
    return true;
  }

  bool end_array() override {
    list_ = nullptr;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
    fail<FormatError>("the header must be JSON: {}", quote(error.what()));
  }

 private:
  enum class Level { outside, names, tensor, metadata };

  bool unexpected(const std::string& what) {
    const auto where = level_ == Level::outside ? std::string("at the beginning")
                       : level_ == Level::names ? "for " + quote(name_)
                                                : "in " + quote(name_) + " for " + quote(field_);
    fail<FormatError>("the header must not have {} {}", what, where);
  }

  void check_field() {
    const bool again = (field_ == "dtype" && draft_.dtype) || (field_ == "shape" && draft_.shape) ||
                       (field_ == "data_offsets" && draft_.offsets);
    check<FormatError>(!again, "tensor {}: a field may appear once: {}", quote(name_),
                       quote(field_));
    check<FormatError>(field_ == "dtype" || field_ == "shape" || field_ == "data_offsets",
                       "tensor {}: the fields are dtype, shape and data_offsets: {}", quote(name_),
                       quote(field_));
  }

  void finish_tensor() {
    check<FormatError>(draft_.dtype && draft_.shape && draft_.offsets,
                       "tensor {}: dtype, shape and data_offsets are needed: {} is missing",
                       quote(name_),
                       !draft_.dtype   ? "dtype"
                       : !draft_.shape ? "shape"
                                       : "data_offsets");
    const auto& offsets = *draft_.offsets;
    check<FormatError>(offsets.size() == 2 && offsets[0] <= offsets[1],
                       "tensor {}: data_offsets must be a begin and an end: [{}]", quote(name_),
                       join(offsets, ", "));
    const auto bytes = static_cast<std::uint64_t>(offsets[1] - offsets[0]);
    const auto wanted = bytes_of_shape(*draft_.shape, size_of(*draft_.dtype));
    check<FormatError>(wanted.has_value(), "tensor {}: the size must fit in 63 bits: shape [{}]",
                       quote(name_), join(*draft_.shape, ", "));
    check<FormatError>(*wanted == bytes,
                       "tensor {}: shape [{}] of {} needs {} bytes: data_offsets [{}] have {}",
                       quote(name_), join(*draft_.shape, ", "), format_name(*draft_.dtype), *wanted,
                       join(offsets, ", "), bytes);
    header.entries[name_] = {*draft_.dtype, Shape(std::move(*draft_.shape)),
                             static_cast<std::uint64_t>(offsets[0]), bytes};
  }

  Level level_ = Level::outside;
  std::string name_, field_;
  Draft draft_;
  std::vector<std::int64_t>* list_ = nullptr;
  bool had_metadata_ = false;
};

// Every byte of the data belongs to exactly one tensor: nothing can hide, nothing is used twice.
void check_coverage(const SafetensorsHeader& header, std::uint64_t data_bytes) {
  std::vector<std::pair<const std::string*, const Entry*>> order;
  for (const auto& [name, entry] : header.entries) order.emplace_back(&name, &entry);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second->offset, a.second->bytes) <
           std::pair(b.second->offset, b.second->bytes);
  });
  std::uint64_t end = 0;
  for (const auto& [name, entry] : order) {
    check<FormatError>(
        entry->offset <= data_bytes && entry->bytes <= data_bytes - entry->offset,
        "tensor {}: the data must be within the {} bytes of the file: {} bytes at {}", quote(*name),
        data_bytes, entry->bytes, entry->offset);
    check<FormatError>(entry->offset == end,
                       "tensor {}: the data must begin where the one before ends, at {}: it begins "
                       "at {}",
                       quote(*name), end, entry->offset);
    end += entry->bytes;
  }
  check<FormatError>(end == data_bytes, "the tensors must cover the data of {} bytes: {} are used",
                     data_bytes, end);
}

// A document of its own would sort the members by name.
void add_member(std::string& text, std::string_view name, const json& value) {
  if (text.size() > 1) text += ',';
  text += json(name).dump() + ':' + value.dump();
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes) {
  check<FormatError>(text.starts_with('{'), "the header must begin with '{{': {}",
                     quote(text.substr(0, 8)));
  HeaderReader reader;
  json::sax_parse(text.begin(), text.end(), &reader);
  check_coverage(reader.header, data_bytes);
  return std::move(reader.header);
}

std::string make_safetensors_header(SafetensorsHeader& header) {
  std::vector<std::pair<const std::string, Entry>*> order;
  for (auto& pair : header.entries) order.push_back(&pair);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return size_of(a->second.dtype) > size_of(b->second.dtype);
  });
  std::string text = "{";
  std::uint64_t end = 0;
  try {
    if (!header.metadata.empty()) add_member(text, kMetadata, header.metadata);
    for (auto* pair : order) {
      auto& [name, entry] = *pair;
      check<ArgumentError>(name != kMetadata, "the name is the format's own: {}", kMetadata);
      entry.offset = end;
      end += entry.bytes;
      add_member(text, name,
                 {{"dtype", format_name(entry.dtype)},
                  {"shape", entry.shape.sizes()},
                  {"data_offsets", {entry.offset, end}}});
    }
  } catch (const json::exception& error) {
    fail<ArgumentError>("names and metadata must be UTF-8: {}", error.what());
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  check<ArgumentError>(text.size() <= kMaxSafetensorsHeader,
                       "the header may have {} bytes: {} are needed", kMaxSafetensorsHeader,
                       text.size());
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace netcl::io_detail

// The literal is a dictionary with three known keys. NumPy reads it with Python's own parser; this
// reads just what NumPy and its imitators write, with any spaces and either kind of quote.
#include "io/npy_header.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "base/check.h"
#include "io/array_bytes.h"
#include "io/quote.h"

namespace netcl::io_detail {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::uint64_t kMaxHeader = 1 << 20;
constexpr std::size_t kMaxRank = 64;

constexpr std::pair<DType, std::string_view> kDescriptions[] = {
    {DType::boolean, "|b1"}, {DType::uint8, "|u1"},   {DType::int8, "|i1"},
    {DType::int32, "<i4"},   {DType::int64, "<i8"},   {DType::float16, "<f2"},
    {DType::float32, "<f4"}, {DType::float64, "<f8"},
};

DType dtype_described(std::string_view text) {
  // The byte order is the first character; of single bytes it means nothing.
  const auto kind = text.empty() ? text : text.substr(1);
  for (const auto& [dtype, description] : kDescriptions) {
    if (description.substr(1) != kind) continue;
    check<FormatError>(text[0] != '>' || size_of(dtype) == 1,
                       "the values must be little-endian, not big-endian: dtype {}", quote(text));
    if (std::string_view("<|=>").find(text[0]) != std::string_view::npos) return dtype;
  }
  check<FormatError>(kind != "O" && kind != "O8",
                     "arrays of Python objects are not read (they can run code): dtype {}",
                     quote(text));
  fail<FormatError>("the dtype must be one of |b1, |u1, |i1, <i4, <i8, <f2, <f4, <f8: {}",
                    quote(text));
}

class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}

  bool take(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void need(char c) {
    check<FormatError>(take(c), "'{}' is needed at byte {} of the header: {}", c, at_,
                       quote(text_.substr(std::min(at_, text_.size()), 20)));
  }

  std::string_view string() {
    const char mark = take('"') ? '"' : '\'';
    if (mark == '\'') need('\'');
    const auto end = text_.find(mark, at_);
    check<FormatError>(end != std::string_view::npos, "a text of the header must end: {}",
                       quote(text_.substr(at_, 20)));
    const auto value = text_.substr(at_, end - at_);
    check<FormatError>(value.find('\\') == std::string_view::npos,
                       "a text of the header must not have escapes: {}", quote(value));
    at_ = end + 1;
    return value;
  }

  bool boolean() {
    skip_spaces();
    for (const auto& [word, value] : {std::pair("True", true), std::pair("False", false)}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += std::string_view(word).size();
      return value;
    }
    fail<FormatError>("fortran_order must be True or False: {}", quote(text_.substr(at_, 20)));
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> sizes;
    need('(');
    while (!take(')')) {
      check<FormatError>(sizes.size() < kMaxRank, "at most {} axes may be given: more", kMaxRank);
      sizes.push_back(size());
      if (take(')')) {
        // "(3)" is a number in Python, not a tuple.
        check<FormatError>(sizes.size() != 1, "the shape must be a tuple: ({})", sizes[0]);
        return sizes;
      }
      need(',');
    }
    return sizes;
  }

  void end() {
    skip_spaces();
    check<FormatError>(at_ == text_.size(), "nothing may follow the dictionary: {}",
                       quote(text_.substr(at_, 20)));
  }

  bool is_string() {
    skip_spaces();
    return at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"');
  }

 private:
  std::int64_t size() {
    skip_spaces();
    const auto begin = at_;
    std::int64_t value = 0;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0; ++at_)
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value))
        fail<FormatError>("a size must fit in 63 bits: {}", quote(text_.substr(begin, 30)));
    check<FormatError>(at_ > begin, "a size that is not negative is needed: {}",
                       quote(text_.substr(begin, 20)));
    take('L');  // Python 2 wrote its long integers so
    return value;
  }

  void skip_spaces() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != text_.npos) ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// Elements in Fortran order are those of the transposed array in C order.
HostArray from_fortran(const HostArray& stored, const Shape& shape) {
  HostArray array(shape, stored.dtype());
  const auto element = size_of(stored.dtype());
  auto reversed = shape.sizes();
  std::reverse(reversed.begin(), reversed.end());
  auto strides = contiguous_strides(Shape(reversed));
  std::reverse(strides.begin(), strides.end());
  std::vector<std::int64_t> at(strides.size(), 0);
  const auto* from = static_cast<const std::byte*>(stored.data());
  auto* to = static_cast<std::byte*>(array.data());
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < array.numel(); ++i) {
    std::copy_n(from + static_cast<std::size_t>(offset) * element, element, to);
    to += element;
    for (std::size_t axis = at.size(); axis-- > 0;) {
      offset += strides[axis];
      if (++at[axis] < shape.sizes()[axis]) break;
      offset -= strides[axis] * at[axis];
      at[axis] = 0;
    }
  }
  return array;
}

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

}  // namespace

NpyHeader parse_npy_literal(std::string_view text) {
  Literal literal(text);
  std::optional<DType> dtype;
  std::optional<bool> fortran;
  std::optional<std::vector<std::int64_t>> shape;
  literal.need('{');
  while (!literal.take('}')) {
    const auto key = literal.string();
    literal.need(':');
    const bool again = (key == "descr" && dtype) || (key == "fortran_order" && fortran) ||
                       (key == "shape" && shape);
    check<FormatError>(!again, "a key may appear once: {}", quote(key));
    if (key == "descr") {
      check<FormatError>(literal.is_string(), "structured dtypes are not read");
      dtype = dtype_described(literal.string());
    } else if (key == "fortran_order") {
      fortran = literal.boolean();
    } else if (key == "shape") {
      shape = literal.tuple();
    } else {
      fail<FormatError>("the keys are descr, fortran_order and shape: {}", quote(key));
    }
    if (!literal.take(',')) {
      literal.need('}');
      break;
    }
  }
  literal.end();
  check<FormatError>(dtype && fortran && shape, "descr, fortran_order and shape are needed: {}",
                     quote(text));
  const auto bytes = bytes_of_shape(*shape, size_of(*dtype));
  check<FormatError>(bytes.has_value(), "the number of bytes must fit in 63 bits: shape ({})",
                     join(*shape, ", "));
  return {*dtype, *fortran, Shape(*shape), *bytes};
}

HostArray read_npy(const std::function<void(std::span<std::byte>)>& read,
                   const std::function<void(std::uint64_t)>& check_size) {
  std::array<std::byte, 8> start{};
  read(start);
  const std::string_view magic(reinterpret_cast<const char*>(start.data()), kMagic.size());
  check<FormatError>(magic == kMagic, "the file must begin with \\x93NUMPY: {}", quote(magic));
  const int version = std::to_integer<int>(start[6]);
  check<FormatError>(version >= 1 && version <= 3, "the version must be 1, 2 or 3: {}", version);
  std::array<std::byte, 4> length_bytes{};
  const auto length_span = std::span(length_bytes).first(version == 1 ? 2 : 4);
  read(length_span);
  const auto length = little_endian(length_span);
  check<FormatError>(length <= kMaxHeader, "the header may have {} bytes: {}", kMaxHeader, length);
  std::string text(length, '\0');
  read(std::as_writable_bytes(std::span(text)));
  const auto header = parse_npy_literal(text);
  check_size(header.bytes);
  HostArray array(header.shape, header.dtype);
  read(bytes_of(array));
  settle_booleans(array);
  return header.fortran_order && header.shape.rank() > 1 ? from_fortran(array, header.shape)
                                                         : array;
}

std::string make_npy_header(const HostArray& array, const char* op) {
  const auto* row = std::find_if(std::begin(kDescriptions), std::end(kDescriptions),
                                 [&](const auto& pair) { return pair.first == array.dtype(); });
  check<DtypeError>(row != std::end(kDescriptions),
                    "[{}] the dtype must be one that NumPy has; cast to float32 or use "
                    "safetensors: {}",
                    op, name_of(array.dtype()));
  auto text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", row->second,
                          array.shape().to_string());
  // NumPy aligns the values to 64 bytes. Version 2 is for headers of 64 KiB, which no shape needs.
  const std::size_t before = kMagic.size() + 4;
  const auto total = (before + text.size() + 1 + 63) / 64 * 64;
  text.resize(total - before - 1, ' ');
  text += '\n';
  const auto length = text.size();
  check<ShapeError>(length <= 0xffff, "[{}] the shape must fit a header of 64 KiB: {} axes", op,
                    array.shape().rank());
  std::string header(kMagic);
  header += {'\1', '\0', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  return header + text;
}

}  // namespace netcl::io_detail

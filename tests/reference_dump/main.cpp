// Writes what the references compute, for tests/python/test_references.py to compute again:
//   reference_dump <directory>
// index.json lists every op with its samples (attributes; shape, dtype and place of each array);
// <op>.npy holds all values of an op one after the other, as float64.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ops/registry.h"
#include "selftest/data.h"

namespace netcl {
namespace {

using nlohmann::json;

json attribute_json(const AttributeValue& value) {
  return std::visit(
      []<class T>(const T& v) -> json {
        if constexpr (std::is_same_v<T, double>)
          if (!std::isfinite(v)) return fmt::format("{}", v);  // JSON has no infinity
        return v;
      },
      value);
}

// In double precision where the op has it: nothing but the reference's own arithmetic is checked.
DType dtype_of(const OpDef& op, const OpSample& sample) {
  const auto& dtypes = sample.dtypes.empty() ? op.dtypes : sample.dtypes;
  const bool has_double = std::find(dtypes.begin(), dtypes.end(), DType::float64) != dtypes.end();
  return has_double ? DType::float64 : dtypes.front();
}

class OpDump {
 public:
  explicit OpDump(const OpDef& op) : op_(op) {}

  json samples() {
    json list = json::array();
    std::uint64_t seed = 1;
    for (const auto& sample : op_.samples()) {
      const auto inputs = selftest_detail::make_inputs(sample, dtype_of(op_, sample), ++seed);
      const auto outputs = selftest_detail::run_reference(op_, inputs, sample.attributes);
      json attributes = json::object();
      for (const auto& [name, value] : sample.attributes.entries())
        attributes[std::string(name)] = attribute_json(value);
      list.push_back({{"id", sample.id},
                      {"attributes", attributes},
                      {"inputs", arrays(inputs)},
                      {"outputs", arrays(outputs)}});
    }
    return list;
  }

  // The format of NumPy's own arrays, version 1.0.
  void write(const std::string& path) const {
    static_assert(std::endian::native == std::endian::little);
    std::string header =
        fmt::format("{{'descr': '<f8', 'fortran_order': False, 'shape': ({},), }}", values_.size());
    constexpr std::size_t kPrefix = 10, kAlign = 64;
    const auto length = (kPrefix + header.size() + 1 + kAlign - 1) / kAlign * kAlign - kPrefix;
    header.resize(length - 1, ' ');
    header += '\n';
    std::ofstream out(path, std::ios::binary);
    out << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(length & 0xff)
        << static_cast<char>(length >> 8) << header;
    out.write(reinterpret_cast<const char*>(values_.data()),
              static_cast<std::streamsize>(values_.size() * sizeof(double)));
    out.close();
    if (!out) throw FileError("[reference_dump] the file must be writable: " + path);
  }

 private:
  json arrays(const std::vector<RefArray>& all) {
    json list = json::array();
    for (const auto& array : all) {
      if (!array.present) {
        list.push_back(nullptr);
        continue;
      }
      list.push_back({{"shape", array.shape.sizes()},
                      {"dtype", std::string(name_of(array.dtype))},
                      {"at", values_.size()}});
      values_.insert(values_.end(), array.values.begin(), array.values.end());
    }
    return list;
  }

  const OpDef& op_;
  std::vector<double> values_;
};

void dump(const std::string& directory) {
  std::filesystem::create_directories(directory);
  json index = json::object();
  for (const auto* op : all_ops()) {
    OpDump one(*op);
    index[op->name] = one.samples();
    one.write(directory + "/" + op->name + ".npy");
  }
  std::ofstream out(directory + "/index.json", std::ios::binary);
  out << index.dump();
  out.close();
  if (!out) throw FileError("[reference_dump] the directory must be writable: " + directory);
}

}  // namespace
}  // namespace netcl

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: reference_dump <directory>\n", stderr);
    return 2;
  }
  try {
    netcl::dump(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reference_dump: %s\n", error.what());
    return 1;
  }
}

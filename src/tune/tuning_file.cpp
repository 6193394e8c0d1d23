// Tuning files as JSON. Numbers and names from a file end up in kernel launches and compiler
// options, so each is checked for its type, range and alphabet before anything is taken over.
#include "tune/tuning_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/check.h"

namespace netcl {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "netcl-tuning";
constexpr std::int64_t kVersion = 1;
constexpr int kMaxDepth = 8;  // ours nest five deep
constexpr std::size_t kMaxText = 4096, kMaxLocalRank = 3, kMaxGlobalRank = 16;
constexpr std::size_t kMaxParameters = 64, kMaxParameterName = 64, kMaxCandidates = 4096;
constexpr std::size_t kMaxSize = std::numeric_limits<std::int64_t>::max();

// Rejects what the parser itself lets pass: deep nesting, and an object that names a field twice
// (readers disagree about which of the two counts).
class StructureCheck {
 public:
  bool operator()(int depth, json::parse_event_t event, const json& value) {
    check<FormatError>(depth <= kMaxDepth, "at most {} levels may be nested", kMaxDepth);
    if (event == json::parse_event_t::object_start) names_.emplace_back();
    if (event == json::parse_event_t::object_end) names_.pop_back();
    if (event == json::parse_event_t::key)
      check<FormatError>(names_.back().insert(value.get<std::string>()).second,
                         "a field may appear once: \"{}\"", value.get<std::string>());
    return true;
  }

 private:
  std::vector<std::set<std::string>> names_;
};

json parse_checked(std::span<const std::byte> bytes) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  StructureCheck structure;
  try {
    return json::parse(text, text + bytes.size(), std::ref(structure));
  } catch (const json::exception& error) {
    fail<FormatError>("it must be JSON: {}", error.what());
  }
}

const json& field(const json& object, const char* name) {
  check<FormatError>(object.is_object(), "an object is needed around \"{}\"", name);
  const auto found = object.find(name);
  check<FormatError>(found != object.end(), "\"{}\" is missing", name);
  return *found;
}

std::string text_field(const json& object, const char* name) {
  const auto& value = field(object, name);
  check<FormatError>(value.is_string(), "\"{}\" must be text", name);
  return value.get<std::string>();
}

std::vector<std::size_t> sizes_field(const json& object, const char* name) {
  const auto& value = field(object, name);
  check<FormatError>(value.is_array(), "\"{}\" must be a list", name);
  std::vector<std::size_t> sizes;
  for (const auto& size : value) {
    // A literal that does not fit 64 bits arrives as a float, a negative one as signed.
    check<FormatError>(size.is_number_unsigned(), "\"{}\" must hold sizes", name);
    sizes.push_back(size.get<std::size_t>());
  }
  return sizes;
}

std::map<std::string, std::int64_t> parameters_field(const json& object) {
  const auto& value = field(object, "parameters");
  check<FormatError>(value.is_object(), "\"parameters\" must be an object");
  std::map<std::string, std::int64_t> parameters;
  for (const auto& [name, number] : value.items()) {
    check<FormatError>(number.is_number_integer(), "the parameter \"{}\" must be an integer", name);
    check<FormatError>(!number.is_number_unsigned() || number.get<std::uint64_t>() <= kMaxSize,
                       "the parameter \"{}\" must fit 63 bits", name);
    parameters.emplace(name, number.get<std::int64_t>());
  }
  return parameters;
}

// null stands for the infinite time of a candidate that is not usable.
double time_field(const json& object, const char* name) {
  const auto& value = field(object, name);
  if (value.is_null()) return std::numeric_limits<double>::infinity();
  check<FormatError>(value.is_number(), "\"{}\" must be a number", name);
  return value.get<double>();
}

TuningKey key_from(const json& object) {
  return {.device = text_field(object, "device"),
          .driver = text_field(object, "driver"),
          .kernel = text_field(object, "kernel"),
          .source_hash = text_field(object, "source_hash"),
          .global_size = sizes_field(object, "global_size"),
          .dtypes = text_field(object, "dtypes")};
}

TuningRecord record_from(const json& object) {
  TuningRecord record{.local_size = sizes_field(object, "local_size"),
                      .parameters = parameters_field(object),
                      .runtime_us = time_field(object, "runtime_us"),
                      .default_us = time_field(object, "default_us"),
                      .candidates = {}};
  const auto& candidates = field(object, "candidates");
  check<FormatError>(candidates.is_array(), "\"candidates\" must be a list");
  for (const auto& candidate : candidates)
    record.candidates.push_back({.local_size = sizes_field(candidate, "local_size"),
                                 .parameters = parameters_field(candidate),
                                 .runtime_us = time_field(candidate, "runtime_us"),
                                 .note = text_field(candidate, "note")});
  return record;
}

TuningTable table_from(const json& document) {
  check<FormatError>(text_field(document, "format") == kFormat, "it must be a {} file", kFormat);
  const auto& version = field(document, "version");
  check<FormatError>(version.is_number_integer() && version == kVersion,
                     "the version must be {}: {}", kVersion, version.dump().substr(0, 40));
  const auto& entries = field(document, "entries");
  check<FormatError>(entries.is_array(), "\"entries\" must be a list");
  TuningTable table;
  for (const auto& entry : entries) {
    auto key = key_from(entry);
    auto record = std::make_shared<const TuningRecord>(record_from(entry));
    check_tuning_entry(key, *record);
    const auto name = key.to_string();
    check<FormatError>(table.emplace(std::move(key), std::move(record)).second,
                       "an entry may appear once: {}", name);
  }
  return table;
}

json time_json(double microseconds) {
  return std::isfinite(microseconds) ? json(microseconds) : json(nullptr);
}

json entry_json(const TuningKey& key, const TuningRecord& record) {
  auto candidates = json::array();
  for (const auto& candidate : record.candidates)
    candidates.push_back({{"local_size", candidate.local_size},
                          {"parameters", candidate.parameters},
                          {"runtime_us", time_json(candidate.runtime_us)},
                          {"note", candidate.note}});
  return {{"device", key.device},
          {"driver", key.driver},
          {"kernel", key.kernel},
          {"source_hash", key.source_hash},
          {"global_size", key.global_size},
          {"dtypes", key.dtypes},
          {"local_size", record.local_size},
          {"parameters", record.parameters},
          {"runtime_us", record.runtime_us},
          {"default_us", record.default_us},
          {"candidates", std::move(candidates)}};
}

void check_text(const char* what, const std::string& text) {
  check<ArgumentError>(text.size() <= kMaxText, "[tuning store] {} has at most {} bytes: {}", what,
                       kMaxText, text.size());
}

void check_sizes(const char* what, const std::vector<std::size_t>& sizes, std::size_t max_rank,
                 std::size_t least) {
  check<ArgumentError>(sizes.size() <= max_rank, "[tuning store] a {} has at most {} parts: {}",
                       what, max_rank, sizes.size());
  for (const auto size : sizes)
    check<ArgumentError>(size >= least && size <= kMaxSize,
                         "[tuning store] a {} is {} at least and fits 63 bits: {}", what, least,
                         size);
}

// Parameters become compiler options -DNAME=value: an identifier, and nothing that could end one.
bool is_identifier(const std::string& name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && name.size() <= kMaxParameterName && letter(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

void check_configuration(const std::vector<std::size_t>& local_size,
                         const std::map<std::string, std::int64_t>& parameters) {
  check_sizes("local size", local_size, kMaxLocalRank, 1);
  check<ArgumentError>(parameters.size() <= kMaxParameters,
                       "[tuning store] at most {} parameters: {}", kMaxParameters,
                       parameters.size());
  for (const auto& [name, value] : parameters)
    check<ArgumentError>(is_identifier(name),
                         "[tuning store] a parameter's name is a C identifier: \"{}\"", name);
}

bool is_ascii(const std::string& text) noexcept {
  return std::ranges::all_of(text, [](unsigned char c) { return c < 0x80; });
}

}  // namespace

void check_tuning_entry(const TuningKey& key, const TuningRecord& record) {
  for (const auto& [what, text] :
       {std::pair("a device", &key.device), std::pair("a driver", &key.driver),
        std::pair("a kernel", &key.kernel), std::pair("a source hash", &key.source_hash),
        std::pair("dtypes", &key.dtypes)})
    check_text(what, *text);
  check_sizes("global size", key.global_size, kMaxGlobalRank, 0);
  check_configuration(record.local_size, record.parameters);
  for (const double time : {record.runtime_us, record.default_us})
    check<ArgumentError>(std::isfinite(time) && time >= 0,
                         "[tuning store] a time is a finite number of microseconds: {}", time);
  check<ArgumentError>(record.candidates.size() <= kMaxCandidates,
                       "[tuning store] at most {} candidates: {}", kMaxCandidates,
                       record.candidates.size());
  for (const auto& candidate : record.candidates) {
    check_configuration(candidate.local_size, candidate.parameters);
    check_text("a note", candidate.note);
    check<ArgumentError>(candidate.runtime_us >= 0,  // NaN is not; infinity is
                         "[tuning store] a candidate's time is not negative: {}",
                         candidate.runtime_us);
  }
}

TuningTable parse_tuning_file(std::span<const std::byte> bytes, const std::string& path) {
  try {
    return table_from(parse_checked(bytes));
  } catch (const Error& error) {  // also the ArgumentErrors of check_tuning_entry
    fail<FormatError>("[tuning store] the file must be a tuning file: {}: {}", path, error.what());
  }
}

std::string tuning_text(const TuningTable& table) {
  // By hand around the entries: one line each keeps the file readable and its differences small.
  auto text =
      fmt::format("{{\"format\": \"{}\", \"version\": {}, \"entries\": [", kFormat, kVersion);
  const char* separator = "\n";
  for (const auto& [key, record] : table) {
    text += separator;
    text += entry_json(key, *record).dump(-1, ' ', false, json::error_handler_t::replace);
    separator = ",\n";
  }
  return text + "\n]}\n";
}

bool is_plain_ascii(const TuningKey& key) noexcept {
  return is_ascii(key.device) && is_ascii(key.driver) && is_ascii(key.kernel) &&
         is_ascii(key.source_hash) && is_ascii(key.dtypes);
}

std::string with_valid_utf8(const std::string& text) {
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace))
      .get<std::string>();
}

TuningKey with_valid_utf8(TuningKey key) {
  for (auto* text : {&key.device, &key.driver, &key.kernel, &key.source_hash, &key.dtypes})
    *text = with_valid_utf8(*text);
  return key;
}

}  // namespace netcl

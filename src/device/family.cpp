// The table of device families, and the classification of a device by its queries.
#include "device/family.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <span>

#include "netcl/device.h"

namespace netcl::detail {
namespace {

using F = GPUFamily;

// Tiles: what a 64x64 block of accumulators needs in registers decides between 64 and 32.
// Work-groups: AMD's wavefronts gain nothing from larger groups without local memory.
constexpr FamilyTraits kFamilies[] = {
    // family, name, lanes, bytes/flop, tile m, n, k, wg 1d, wg 2d
    {F::unknown, "UNKNOWN", 0, 0, 32, 32, 8, 256, {16, 16}},
    {F::cpu, "CPU", 0, 0.12, 16, 16, 4, 16, {4, 4}},
    {F::nvidia_maxwell, "NVIDIA_MAXWELL", 128, 0.036, 64, 64, 8, 256, {16, 16}},
    {F::nvidia_pascal, "NVIDIA_PASCAL", 128, 0.036, 64, 64, 8, 256, {16, 16}},
    {F::nvidia_volta, "NVIDIA_VOLTA", 64, 0.057, 64, 64, 8, 256, {16, 16}},
    {F::nvidia_turing, "NVIDIA_TURING", 64, 0.045, 64, 64, 16, 256, {16, 16}},
    {F::nvidia_ampere, "NVIDIA_AMPERE", 128, 0.026, 64, 64, 16, 256, {16, 16}},
    {F::nvidia_ada, "NVIDIA_ADA", 128, 0.013, 64, 64, 16, 256, {16, 16}},
    {F::nvidia_hopper, "NVIDIA_HOPPER", 128, 0.050, 64, 64, 16, 256, {16, 16}},
    {F::nvidia_blackwell, "NVIDIA_BLACKWELL", 128, 0.017, 64, 64, 16, 256, {16, 16}},
    {F::nvidia_other, "NVIDIA_OTHER", 128, 0.04, 32, 32, 8, 256, {16, 16}},
    {F::amd_gcn, "AMD_GCN", 64, 0.041, 32, 32, 8, 64, {8, 8}},
    {F::amd_vega, "AMD_VEGA", 64, 0.040, 32, 32, 8, 64, {8, 8}},
    {F::amd_cdna, "AMD_CDNA", 64, 0.070, 64, 64, 16, 256, {16, 16}},
    // RDNA drivers count dual compute units; RDNA3 issues two operations per lane.
    {F::amd_rdna, "AMD_RDNA", 128, 0.045, 32, 32, 8, 64, {8, 8}},
    {F::amd_rdna2, "AMD_RDNA2", 128, 0.031, 64, 64, 16, 64, {16, 4}},
    {F::amd_rdna3, "AMD_RDNA3", 256, 0.016, 64, 64, 16, 64, {16, 4}},
    {F::amd_rdna4, "AMD_RDNA4", 256, 0.014, 64, 64, 16, 64, {16, 4}},
    {F::amd_other, "AMD_OTHER", 64, 0.04, 32, 32, 8, 64, {8, 8}},
    // Intel drivers count execution units (vector engines).
    {F::intel_gen, "INTEL_GEN", 8, 0.090, 32, 32, 8, 64, {8, 8}},
    {F::intel_xe, "INTEL_XE", 8, 0.033, 32, 32, 8, 128, {16, 8}},
    {F::intel_arc, "INTEL_ARC", 8, 0.029, 32, 32, 8, 256, {16, 16}},
    {F::intel_xe_hpc, "INTEL_XE_HPC", 16, 0.060, 64, 64, 16, 256, {16, 16}},
    {F::intel_xe2, "INTEL_XE2", 16, 0.033, 64, 64, 8, 256, {16, 16}},
    {F::intel_other, "INTEL_OTHER", 8, 0.05, 32, 32, 8, 64, {8, 8}},
    {F::apple, "APPLE", 128, 0.026, 64, 64, 16, 256, {16, 16}},
    {F::arm_mali, "ARM_MALI", 32, 0.05, 16, 16, 4, 64, {8, 8}},
    {F::qualcomm_adreno, "QUALCOMM_ADRENO", 0, 0, 32, 32, 4, 128, {16, 8}},
};

struct NamePart {
  std::string_view part;
  GPUFamily family;
};

GPUFamily by_name(std::string_view name, std::span<const NamePart> parts, GPUFamily otherwise) {
  for (const auto& [part, family] : parts)
    if (contains(name, part)) return family;
  return otherwise;
}

// Only for drivers without cl_nv_device_attribute_query.
constexpr NamePart kNvidiaNames[] = {
    {"RTX 50", F::nvidia_blackwell}, {"B200", F::nvidia_blackwell},
    {"H100", F::nvidia_hopper},      {"H200", F::nvidia_hopper},
    {"RTX 40", F::nvidia_ada},       {"Ada Generation", F::nvidia_ada},
    {" L4", F::nvidia_ada},  // L4, L40, L40S
    {"RTX 30", F::nvidia_ampere},    {"RTX A", F::nvidia_ampere},
    {"A100", F::nvidia_ampere},      {"A40", F::nvidia_ampere},
    {"A10", F::nvidia_ampere},       {"RTX 20", F::nvidia_turing},
    {"GTX 16", F::nvidia_turing},    {"Quadro RTX", F::nvidia_turing},
    {"T4", F::nvidia_turing},        {"V100", F::nvidia_volta},
    {"TITAN V", F::nvidia_volta},    {"GTX 10", F::nvidia_pascal},
    {"P100", F::nvidia_pascal},      {"P40", F::nvidia_pascal},
    {"GTX 9", F::nvidia_maxwell},    {"GTX 750", F::nvidia_maxwell},
};

// Code names of drivers that do not give the gfx number.
constexpr NamePart kAmdNames[] = {
    {"navi4", F::amd_rdna4},   {"navi3", F::amd_rdna3},  {"navi2", F::amd_rdna2},
    {"navi1", F::amd_rdna},    {"vega", F::amd_vega},    {"Instinct MI", F::amd_cdna},
    {"Ellesmere", F::amd_gcn}, {"Polaris", F::amd_gcn},  {"Baffin", F::amd_gcn},
    {"Fiji", F::amd_gcn},      {"Tonga", F::amd_gcn},    {"Hawaii", F::amd_gcn},
    {"RX 90", F::amd_rdna4},   {"RX 7", F::amd_rdna3},   {"RX 6", F::amd_rdna2},
    {"RX 5700", F::amd_rdna},  {"RX 5600", F::amd_rdna}, {"RX 5500", F::amd_rdna},
    {"RX 5", F::amd_gcn},      {"RX 4", F::amd_gcn},
};

// Only for drivers without cl_intel_device_attribute_query.
constexpr NamePart kIntelNames[] = {
    {"Data Center GPU Max", F::intel_xe_hpc},
    {"Data Center GPU Flex", F::intel_arc},
    {"Arc(TM) B", F::intel_xe2},
    {"Arc(TM) 130V", F::intel_xe2},
    {"Arc(TM) 140V", F::intel_xe2},
    {"Arc", F::intel_arc},
    {"Iris(R) Xe", F::intel_xe},
    {"UHD Graphics 7", F::intel_xe},
    {"HD Graphics", F::intel_gen},  // also UHD
    {"Iris", F::intel_gen},
};

GPUFamily nvidia_family(const DeviceQueries& queries) {
  const auto major = queries.nv_compute_major, minor = queries.nv_compute_minor;
  switch (major) {
    case 0:
      return by_name(queries.name, kNvidiaNames, F::nvidia_other);
    case 5:
      return F::nvidia_maxwell;
    case 6:
      return F::nvidia_pascal;
    case 7:
      return minor >= 5 ? F::nvidia_turing : F::nvidia_volta;
    case 8:
      return minor == 9 ? F::nvidia_ada : F::nvidia_ampere;
    case 9:
      return F::nvidia_hopper;
    default:
      return major >= 10 ? F::nvidia_blackwell : F::nvidia_other;
  }
}

// "gfx90a:sramecc+:xnack-" -> "90a"; empty where the name holds no gfx number.
std::string_view gfx_digits(std::string_view name) {
  const auto at = name.find("gfx");
  if (at == std::string_view::npos) return {};
  auto digits = name.substr(at + 3);
  const auto is_digit = [](unsigned char c) { return std::isxdigit(c) != 0; };
  const auto end = std::find_if_not(digits.begin(), digits.end(), is_digit);
  digits = digits.substr(0, static_cast<std::size_t>(end - digits.begin()));
  return digits.size() >= 3 ? digits : std::string_view{};
}

GPUFamily amd_family_of(unsigned major, unsigned minor, bool matrix_chip) {
  switch (major) {
    case 6:
    case 7:
    case 8:
      return F::amd_gcn;
    case 9:
      return matrix_chip ? F::amd_cdna : F::amd_vega;
    case 10:
      return minor >= 3 ? F::amd_rdna2 : F::amd_rdna;
    case 11:
      return F::amd_rdna3;
    case 12:
      return F::amd_rdna4;
    default:
      return F::amd_other;
  }
}

GPUFamily amd_family(const DeviceQueries& queries) {
  const auto gfx = gfx_digits(queries.name);
  // The number alone does not tell MI100 (gfx908) and MI200 (gfx90a) from Vega (gfx900, gfx906).
  const bool matrix_chip = gfx == "908" || gfx == "90a" ||
                           (gfx.size() == 3 && gfx[0] == '9' && (gfx[1] == '4' || gfx[1] == '5'));
  if (queries.amd_gfxip_major != 0)
    return amd_family_of(queries.amd_gfxip_major, queries.amd_gfxip_minor, matrix_chip);
  if (!gfx.empty()) {
    unsigned major = 0;
    // The last two digits are minor version and stepping.
    std::from_chars(gfx.data(), gfx.data() + gfx.size() - 2, major);
    const auto minor = static_cast<unsigned>(gfx[gfx.size() - 2] - '0');
    return amd_family_of(major, minor, matrix_chip);
  }
  const auto found = by_name(queries.name, kAmdNames, F::amd_other);
  return found != F::amd_other ? found : by_name(queries.amd_board_name, kAmdNames, F::amd_other);
}

GPUFamily intel_family(const DeviceQueries& queries) {
  if (queries.intel_ip_version == 0) return by_name(queries.name, kIntelNames, F::intel_other);
  const auto architecture = queries.intel_ip_version >> 22;
  const auto release = (queries.intel_ip_version >> 14) & 0xff;
  if (architecture < 12) return F::intel_gen;
  if (architecture >= 20) return F::intel_xe2;
  if (release < 50) return F::intel_xe;
  return release == 60 || release == 61 ? F::intel_xe_hpc : F::intel_arc;
}

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

std::size_t find_folded(std::string_view text, std::string_view part, std::size_t from) {
  const auto same = [](char a, char b) { return lower(a) == lower(b); };
  const auto at = std::search(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(),
                              part.begin(), part.end(), same);
  return at == text.end() ? std::string_view::npos : static_cast<std::size_t>(at - text.begin());
}

}  // namespace

bool contains(std::string_view text, std::string_view part) {
  return find_folded(text, part, 0) != std::string_view::npos;
}

bool contains_word(std::string_view text, std::string_view word) {
  for (auto at = find_folded(text, word, 0); at != std::string_view::npos;
       at = find_folded(text, word, at + 1)) {
    const auto end = at + word.size();
    const bool starts = at == 0 || !is_word_character(text[at - 1]);
    const bool ends = end == text.size() || !is_word_character(text[end]);
    if (starts && ends) return true;
  }
  return false;
}

const FamilyTraits& traits_of(GPUFamily family) {
  for (const auto& row : kFamilies)
    if (row.family == family) return row;
  return kFamilies[0];
}

GPUFamily classify(const DeviceQueries& queries) {
  if (device_type_name(queries.type_bits) == "cpu") return F::cpu;
  // Mesa's drivers are their own vendor: the chip's maker is then in the device's name.
  const auto from = [&](std::string_view part) {
    return contains_word(queries.vendor, part) || contains_word(queries.name, part);
  };
  if (queries.nv_compute_major != 0 || from("NVIDIA")) return nvidia_family(queries);
  if (from("Apple")) return F::apple;
  if (queries.amd_gfxip_major != 0 || from("Advanced Micro Devices") || from("AMD"))
    return amd_family(queries);
  if (queries.intel_ip_version != 0 || from("Intel")) return intel_family(queries);
  if (contains(queries.name, "Mali") || contains(queries.name, "Immortalis")) return F::arm_mali;
  if (contains(queries.name, "Adreno") || from("QUALCOMM")) return F::qualcomm_adreno;
  return F::unknown;
}

}  // namespace netcl::detail

namespace netcl {

std::string_view name_of(GPUFamily family) { return detail::traits_of(family).name; }

}  // namespace netcl

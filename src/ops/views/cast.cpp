// The conversion itself is a copy of the tensor layer; the reference states its rules again.
#include "ops/views/cast.h"

#include <cmath>
#include <limits>

#include "base/format.h"
#include "ops/dispatch.h"

namespace netcl {
namespace {

DType target_of(const Attributes& attributes) { return parse_dtype(attributes.text("dtype")); }

// Integers saturate, fractions are cut, NaN is 0, bool is "not zero".
double converted(double value, DType to) {
  const auto integer = [&](double low, double high) {
    return std::isnan(value) ? 0.0 : std::fmin(std::fmax(std::trunc(value), low), high);
  };
  switch (to) {
    case DType::int8:
      return integer(-128, 127);
    case DType::uint8:
      return integer(0, 255);
    case DType::int32:
      return integer(-0x1p31, 0x1p31 - 1);
    case DType::int64:
      return integer(-0x1p63, 0x1p63);
    case DType::boolean:
      return value != 0 ? 1 : 0;
    default:
      return value;
  }
}

std::vector<OpSample> samples() {
  std::vector<OpSample> all;
  const auto add = [&](DType to, const char* form, SampleInput input) {
    OpSample sample{fmt::format("{}_to_{}", form, name_of(to)), {std::move(input)}};
    sample.attributes = {{"dtype", std::string(name_of(to))}};
    // Rounding to a short type is a staircase, integers have no slope.
    sample.gradient = to == DType::float32 || to == DType::float64;
    all.push_back(std::move(sample));
  };
  for (const auto to : kAllDTypes) add(to, "61", {{61}, Fill::uniform, -300, 300});
  for (const auto to : {DType::float32, DType::int32}) {
    add(to, "0x3", {{0, 3}});
    add(to, "scalar", {{}, Fill::uniform, -9, 9});
    add(to, "5x1x7", {{5, 1, 7}, Fill::uniform, -9, 9});
    add(to, "3x0", {{3, 0}});
    add(to, "1", {{1}, Fill::uniform, -9, 9});
    add(to, "2x3x5x7", {{2, 3, 5, 7}, Fill::uniform, -9, 9});
    add(to, "17x65", {{17, 65}, Fill::uniform, -9, 9});
    add(to, "20011", {{20011}, Fill::uniform, -300, 300});  // several parts of work, and a rest
    add(to, "130x70", {{130, 70}, Fill::uniform, -300, 300});
  }
  for (const auto to : kAllDTypes) {
    add(to, "special", {{67}, Fill::special});
    all.back().gradient = false;
    all.back().dtypes = kFloats;
  }
  return all;
}

void convert(const OpCall& call) { call.outputs[0].copy_from(call.inputs[0]); }

}  // namespace

OpDef cast_op() {
  OpDef op;
  op.name = "cast";
  op.summary = "elements as another dtype; integers saturate, NaN to an integer is 0";
  op.dtypes = kFloatsAndInts;
  op.dtypes.push_back(DType::boolean);
  op.infer = [](const OpSpec& spec) -> std::vector<TensorSpec> {
    return {{spec.shape(0), target_of(spec.attributes)}};
  };
  op.reference = [](RefCall& call) {
    for (std::size_t i = 0; i < call.inputs[0].values.size(); ++i)
      call.outputs[0].values[i] = converted(call.inputs[0].values[i], call.outputs[0].dtype);
  };
  op.host = convert;
  op.variants = {{.name = "cast.copy",
                  .kernel = "",
                  .run = [](const OpCall& call, const VariantRun&) { convert(call); }}};
  op.backward = [](const OpGradient& g) -> std::vector<Tensor> {
    const auto from = g.inputs[0].dtype();
    if (!g.wants(0) || !g.dy() || !is_floating(from) || !is_floating(g.dy().dtype()))
      return {Tensor()};
    return {apply("cast", {g.dy()}, {{"dtype", std::string(name_of(from))}})};
  };
  op.saves = SavedTensors::always(0, 0);
  op.samples = samples;
  op.tolerance = [](const OpSpec&) { return Tolerance{0, 0}; };
  op.tolerance_reason = "one rounding, to nearest even";
  op.takes_views = true;
  return op;
}

}  // namespace netcl

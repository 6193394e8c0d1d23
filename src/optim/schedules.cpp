#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"
#include "netcl/optim.h"

namespace netcl::optim {

Schedule::Schedule(std::shared_ptr<Optimizer> optimizer) : optimizer_(std::move(optimizer)) {
  check<ArgumentError>(optimizer_ != nullptr, "[schedule] the optimizer must not be null");
  base_ = optimizer_->lr();
}

void Schedule::apply() { optimizer_->set_lr(lr_at(count_)); }

void Schedule::step() {
  ++count_;
  apply();
}

std::vector<double> Schedule::state() const {
  std::vector<double> state{static_cast<double>(count_), base_};
  const auto more = more_state();
  state.insert(state.end(), more.begin(), more.end());
  return state;
}

void Schedule::load_state(const std::vector<double>& state) {
  const auto wanted = this->state().size();
  check<ArgumentError>(state.size() == wanted && state[0] >= 0,
                       "[schedule] the state must have {} numbers: {}", wanted, state.size());
  count_ = static_cast<std::int64_t>(state[0]);
  base_ = state[1];
  load_more({state.begin() + 2, state.end()});
  apply();
}

StepSchedule::StepSchedule(std::shared_ptr<Optimizer> optimizer, std::int64_t every, double gamma)
    : Schedule(std::move(optimizer)), every_(every), gamma_(gamma) {
  check<ArgumentError>(every > 0, "[StepSchedule] every must be positive: {}", every);
}
double StepSchedule::lr_at(std::int64_t count) const {
  return base_ * std::pow(gamma_, static_cast<double>(count / every_));
}

CosineSchedule::CosineSchedule(std::shared_ptr<Optimizer> optimizer, std::int64_t total,
                               std::int64_t warmup, double lowest)
    : Schedule(std::move(optimizer)), total_(total), warmup_(warmup), lowest_(lowest) {
  check<ArgumentError>(total > 0 && warmup >= 0 && warmup <= total,
                       "[CosineSchedule] warmup must be within the {} steps: {}", total, warmup);
  apply();
}
double CosineSchedule::lr_at(std::int64_t count) const {
  if (count < warmup_)
    return base_ * static_cast<double>(count + 1) / static_cast<double>(warmup_ + 1);
  const auto length = static_cast<double>(std::max<std::int64_t>(total_ - warmup_, 1));
  const auto done = std::min(1.0, static_cast<double>(count - warmup_) / length);
  return lowest_ + (base_ - lowest_) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

WarmupSchedule::WarmupSchedule(std::shared_ptr<Optimizer> optimizer, std::int64_t warmup)
    : Schedule(std::move(optimizer)), warmup_(warmup) {
  check<ArgumentError>(warmup >= 0, "[WarmupSchedule] warmup must not be negative: {}", warmup);
  apply();
}
double WarmupSchedule::lr_at(std::int64_t count) const {
  return base_ * std::min(1.0, static_cast<double>(count + 1) / static_cast<double>(warmup_ + 1));
}

PlateauSchedule::PlateauSchedule(std::shared_ptr<Optimizer> optimizer, double factor, int patience,
                                 double threshold, double lowest)
    : Schedule(std::move(optimizer)),
      factor_(factor),
      threshold_(threshold),
      lowest_(lowest),
      best_(std::numeric_limits<double>::infinity()),
      patience_(patience) {
  check<ArgumentError>(factor > 0 && factor < 1, "[PlateauSchedule] factor must be in (0, 1): {}",
                       factor);
}
double PlateauSchedule::lr_at(std::int64_t) const { return std::max(lowest_, base_ * scale_); }
void PlateauSchedule::step(double measure) {
  if (measure < best_ * (1 - std::copysign(threshold_, best_)) || std::isinf(best_)) {
    best_ = measure;
    bad_ = 0;
  } else if (++bad_ > patience_) {
    scale_ *= factor_;
    bad_ = 0;
  }
  Schedule::step();
}
std::vector<double> PlateauSchedule::more_state() const {
  return {scale_, best_, static_cast<double>(bad_)};
}
void PlateauSchedule::load_more(const std::vector<double>& state) {
  scale_ = state[0];
  best_ = state[1];
  bad_ = static_cast<int>(state[2]);
}

}  // namespace netcl::optim

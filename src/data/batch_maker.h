// Makes one batch: reads its samples, transforms them, joins them, uploads them.
#pragma once

#include <functional>

#include "netcl/data.h"

namespace netcl::data_detail {

class BatchMaker {
 public:
  BatchMaker(std::shared_ptr<const data::Dataset> dataset, const data::LoaderOptions& options)
      : dataset_(std::move(dataset)), options_(options) {}

  // The samples `indices`, in epoch `epoch`. `cancelled` is asked before each of them; when it says
  // yes the result is empty. Errors name the sample they belong to.
  data::Batch make(std::int64_t index, std::vector<std::int64_t> indices, std::uint64_t seed,
                   std::int64_t epoch, const std::function<bool()>& cancelled) const;

 private:
  data::Sample load(std::int64_t index, std::uint64_t seed, std::int64_t epoch) const;
  HostArray joined(const std::vector<data::Sample>& samples,
                   const std::vector<std::int64_t>& indices) const;

  std::shared_ptr<const data::Dataset> dataset_;
  const data::LoaderOptions& options_;
};

}  // namespace netcl::data_detail

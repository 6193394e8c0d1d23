#include "netcl/host_memory.h"

#include <gtest/gtest.h>

namespace netcl {
namespace {

TEST(HostMemory, OwnerLivesAsLongAsAnyTensor) {
  std::weak_ptr<std::vector<float>> gone;
  Tensor view;
  {
    auto memory = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3, 4});
    gone = memory;
    auto* const data = memory->data();
    const auto x = adopt_host(CPUQueue(), data, Shape{4}, DType::float32, std::move(memory));
    EXPECT_EQ(x.host_data(), data);
    view = x.narrow(0, 1, 2);
    EXPECT_TRUE(view.shares_storage(x));
  }
  ASSERT_FALSE(gone.expired());
  EXPECT_EQ(view.to_vector<float>(), (std::vector<float>{2, 3}));
  view = Tensor();
  EXPECT_TRUE(gone.expired());
}

TEST(HostMemory, BadMemoryIsRefusedAndTheOwnerDropped) {
  auto owner = std::make_shared<int>(0);
  std::weak_ptr<int> gone = owner;
  EXPECT_THROW(adopt_host(CPUQueue(), nullptr, Shape{4}, DType::float32, std::move(owner)),
               ArgumentError);
  EXPECT_TRUE(gone.expired());
}

}  // namespace
}  // namespace netcl

// How products are cut for the cores of a CPU.
#include "ops/panels.h"

#include <gtest/gtest.h>

namespace netcl {
namespace {

ExtendedDeviceProfile cpu_with(std::uint64_t local_memory) {
  ExtendedDeviceProfile profile;
  profile.is_cpu = true;
  profile.local_mem_size = local_memory;
  return profile;
}

TEST(Panels, CutsFitTheMemoryAndCoverTheProduct) {
  for (const std::uint64_t memory : {32u << 10, 48u << 10, 512u << 10, 2048u << 10})
    for (const PanelTile& tile : {PanelTile(6, 2, 8), PanelTile(8, 3, 16), PanelTile(12, 1, 4)})
      for (const std::int64_t slack : {std::int64_t{0}, tile.vec})
        for (const std::int64_t M : {1, 5, 64, 129, 4096})
          for (const std::int64_t N : {1, 16, 49, 1000})
            for (const std::int64_t K : {1, 7, 512, 4608})
              for (const std::int64_t cores : {1, 2, 64}) {
                const PanelRoom room(tile, DType::float32, cpu_with(memory), slack);
                const ProductSize size{M, N, K, 3};
                const auto cut = cut_product(size, tile, room, cores, 1);
                SCOPED_TRACE(testing::Message() << M << "x" << N << "x" << K << " on " << cores
                                                << " cores with " << memory << " bytes");
                ASSERT_GT(cut.rows, 0);
                ASSERT_GT(cut.terms, 0);
                ASSERT_GT(cut.panels, 0);
                EXPECT_EQ(cut.rows % tile.mr, 0);
                EXPECT_EQ(cut.strip % tile.mr, 0);
                EXPECT_LE(cut.terms, room.left_terms);
                EXPECT_LE(cut.panels * (cut.terms * tile.width() + slack), room.elements);
                EXPECT_GE(cut.rows * cut.row_parts(size), M);
                EXPECT_LT(cut.rows * (cut.row_parts(size) - 1), M);
                EXPECT_GE(cut.panels * tile.width() * cut.column_blocks(size, tile), N);
                const auto bytes = (room.elements + room.left_terms * tile.mr) * 4;
                EXPECT_LE(bytes, static_cast<std::int64_t>(memory));
              }
}

TEST(Panels, EveryCoreGetsWork) {
  const PanelTile tile(6, 2, 8);
  const PanelRoom room(tile, DType::float32, cpu_with(512 << 10));
  for (const auto& size : {ProductSize{512, 512, 512, 1}, ProductSize{4096, 16, 64, 1},
                           ProductSize{6, 4096, 64, 1}, ProductSize{6, 16, 64, 8}}) {
    const auto cut = cut_product(size, tile, room, 4, 0.5);
    EXPECT_GE(cut.row_parts(size) * cut.column_blocks(size, tile) * size.batches, 4);
  }
}

TEST(Panels, FewColumnsReadTheLeftFactorOnce) {
  const PanelTile tile(6, 2, 8);
  const PanelRoom room(tile, DType::float32, cpu_with(512 << 10));
  const ProductSize size{512, 49, 4608, 1};
  EXPECT_EQ(cut_product(size, tile, room, 2, 1).column_blocks(size, tile), 1);
}

}  // namespace
}  // namespace netcl

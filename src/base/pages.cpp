#include "base/pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <limits>
#include <utility>

namespace netcl {

Pages::Pages(std::size_t bytes) {
  if (bytes == 0 || bytes > std::numeric_limits<std::size_t>::max() / 2) return;
  // More than asked for, of which an aligned part is kept.
  const auto mapped = bytes + kHuge;
  auto* const memory =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  auto* const first = static_cast<std::byte*>(memory);
  const auto before = (kHuge - reinterpret_cast<std::uintptr_t>(memory) % kHuge) % kHuge;
  if (before > 0) munmap(first, before);
  constexpr std::size_t kPage = 1 << 16;  // the largest of ordinary pages
  const auto kept = (bytes + kPage - 1) / kPage * kPage;
  if (before + kept < mapped) munmap(first + before + kept, mapped - before - kept);
  data_ = first + before;
  bytes_ = kept;
#ifdef MADV_HUGEPAGE
  madvise(data_, bytes_, MADV_HUGEPAGE);  // a wish: where it is not heard, pages are small
#endif
}

Pages::~Pages() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

Pages::Pages(Pages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace netcl

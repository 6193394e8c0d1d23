// Memory of the host for large arrays: in huge pages where the system gives them on request. A
// processor remembers the places of few pages, and reads ahead only within one.
#pragma once

#include <cstddef>

namespace netcl {

class Pages {
 public:
  static constexpr std::size_t kHuge = std::size_t{2} << 20;  // smaller arrays gain nothing

  Pages() = default;
  explicit Pages(std::size_t bytes);  // empty when there is no memory
  ~Pages();
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;

  void* data() const { return data_; }  // at a multiple of kHuge
  explicit operator bool() const { return data_ != nullptr; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace netcl

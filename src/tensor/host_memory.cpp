#include "netcl/host_memory.h"

#include "tensor/access.h"

namespace netcl {

Tensor adopt_host(const Queue& queue, void* memory, const Shape& shape, DType dtype,
                  std::shared_ptr<void> owner) {
  const auto plain = Tensor::adopt_host(queue, memory, shape, dtype);
  // The deleter, not a member of Storage, holds the owner: other tensors pay nothing for it.
  auto drop = [storage = TensorAccess::storage(plain), owner = std::move(owner),
               queue](detail::Storage*) mutable {
    try {
      if (!queue.is_cpu()) queue.finish();
    } catch (const std::exception&) {  // a destructor: a forked child, a device that is gone
    }
    storage.reset();
    owner.reset();
  };
  auto* const storage = TensorAccess::storage(plain).get();
  return TensorAccess::make(DeviceArray(storage, std::move(drop)), queue, shape, dtype);
}

}  // namespace netcl

// Buffer pools and single buffers.
#include "netcl/memory.h"

#include "common.h"

namespace netcl::python {
namespace {

nb::dict stats_dict(const PersistentPoolStats& stats) {
  nb::dict result;
  result["hits"] = stats.hits;
  result["misses"] = stats.misses;
  result["hit_rate"] = stats.hit_rate();
  result["bytes_allocated"] = stats.bytes_allocated;
  result["bytes_cached"] = stats.bytes_cached;
  result["bytes_in_use"] = stats.bytes_in_use;
  result["max_cached_bytes"] = stats.max_cached_bytes;
  result["buckets"] = stats.buckets;
  return result;
}

void bind_lease(nb::module_& m) {
  nb::class_<BufferHandle>(m, "BufferHandle", "One lease of a pool; goes back when released.")
      .def_prop_ro("buffer",
                   [](const BufferHandle& h) -> nb::object {
                     return h.buffer() ? nb::cast(h.buffer()) : nb::none();
                   })
      .def_prop_ro("nbytes", &BufferHandle::nbytes, "As asked for.")
      .def_prop_ro("bucket_size", &BufferHandle::bucket_size, "As allocated.")
      .def("release", &BufferHandle::release, "Back to the pool; a second time does nothing.")
      .def("__bool__", [](const BufferHandle& h) { return static_cast<bool>(h); })
      .def(
          "__enter__", [](nb::handle self) { return self; },
          nb::sig("def __enter__(self) -> BufferHandle"))
      .def("__exit__", [](BufferHandle& h, nb::args) { h.release(); });
  nb::class_<PoolStats>(m, "PoolStats", "What a pool did so far.")
      .def(nb::init<>())
      .def_ro("hits", &PoolStats::hits)
      .def_ro("misses", &PoolStats::misses)
      .def_ro("bytes_allocated", &PoolStats::bytes_allocated)
      .def_ro("bytes_cached", &PoolStats::bytes_cached)
      .def_ro("bytes_in_use", &PoolStats::bytes_in_use)
      .def_prop_ro("hit_rate", &PoolStats::hit_rate)
      .def("__repr__", [](const PoolStats& s) {
        return "PoolStats(hits=" + std::to_string(s.hits) + ", misses=" + std::to_string(s.misses) +
               ", bytes_cached=" + std::to_string(s.bytes_cached) + ")";
      });
}

void bind_pools(nb::module_& m) {
  nb::class_<Pool>(m, "Pool", "What the pools have in common.")
      .def("allocate", &Pool::allocate, "nbytes"_a, unlocked(),
           "A lease of at least so many bytes.")
      .def_prop_ro("stats", &Pool::stats)
      .def("clear", &Pool::clear, unlocked(), "Drops what is cached; leases are not touched.");
  nb::class_<BufferPool, Pool>(m, "BufferPool", "Power-of-two buckets; keeps all until clear().")
      .def(
          "__init__",
          [](BufferPool* self, const ContextArg& context) { new (self) BufferPool(context.get()); },
          "context"_a.none());
  nb::class_<PinnedBufferPool, Pool>(m, "PinnedBufferPool", "Page-locked host memory.")
      .def(
          "__init__",
          [](PinnedBufferPool* self, const QueueArg& queue) {
            new (self) PinnedBufferPool(queue.get());
          },
          "queue"_a);
  nb::class_<PersistentBufferPool, Pool>(m, "PersistentBufferPool",
                                         "Bounded; the pool behind Tensor, one per queue.")
      .def(
          "__init__",
          [](PersistentBufferPool* self, const QueueArg& queue,
             std::optional<std::uint64_t> max_cached_bytes) {
            new (self) PersistentBufferPool(queue.get(), max_cached_bytes);
          },
          "queue"_a, "max_cached_bytes"_a = nb::none())
      .def(
          "get_stats",
          [](const PersistentBufferPool& pool) { return stats_dict(pool.get_stats()); },
          "hits, misses, hit_rate, bytes_allocated, bytes_cached, buckets and more.");
}

}  // namespace

void bind_memory(nb::module_& m) {
  bind_lease(m);
  bind_pools(m);
  m.def(
      "get_pinned_pool", [](const QueueArg& queue) { return get_pinned_pool(queue.get()); },
      "queue"_a, "The pool behind uploads and downloads of a queue.");
  m.def(
      "get_persistent_pool", [](const QueueArg& queue) { return get_persistent_pool(queue.get()); },
      "queue"_a, "The pool behind the tensors of a queue.");
  m.def(
      "is_integrated_gpu", [](const QueueArg& queue) { return is_integrated_gpu(queue.get()); },
      "queue"_a, "Host and device share memory: integrated GPUs and CPU devices.");
  m.def(
      "has_svm_support", [](const QueueArg& queue) { return has_svm_support(queue.get()); },
      "queue"_a, "Whether the device shares pointers with the host.");
  m.def(
      "create_pinned_buffer",
      [](const QueueArg& queue, std::size_t nbytes) {
        return create_pinned_buffer(queue.get(), nbytes);
      },
      "queue"_a, "nbytes"_a, "One page-locked (ALLOC_HOST_PTR) buffer.");
  m.def(
      "create_zero_copy_buffer",
      [](const QueueArg& queue, nb::object array) {
        const auto data = to_host_data(array);
        if (!is_contiguous(data.view.shape, data.view.strides))
          throw ArgumentError("[create_zero_copy_buffer] the array must be contiguous");
        nb::object buffer = nb::cast(create_zero_copy_buffer(
            queue.get(), const_cast<void*>(data.view.data),
            static_cast<std::size_t>(data.view.shape.numel()) * size_of(data.view.dtype)));
        nb::keep_alive_obj(buffer, data.owner);
        return buffer;
      },
      "queue"_a, "array"_a, "A buffer over an array's own memory, which it keeps alive.");
}

}  // namespace netcl::python

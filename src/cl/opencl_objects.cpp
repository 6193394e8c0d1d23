// Contexts, queues, buffers, transfers and events.
#include <array>
#include <memory>

#include "base/check.h"
#include "base/process.h"
#include "base/signals.h"
#include "cl/cl.h"
#include "cl/opencl_api.h"
#include "cl/recording.h"

namespace netcl {

#define NETCL_REFERENCE_COUNTING(Object, Suffix)                          \
  template <>                                                             \
  void Ref<Object>::retain(Object* object) noexcept {                     \
    if (object == nullptr) return;                                        \
    if (const auto* cl = cl::api_if_alive()) cl->Retain##Suffix(object);  \
  }                                                                       \
  template <>                                                             \
  void Ref<Object>::release(Object* object) noexcept {                    \
    if (object == nullptr) return;                                        \
    if (const auto* cl = cl::api_if_alive()) cl->Release##Suffix(object); \
  }
NETCL_REFERENCE_COUNTING(_cl_context, Context)
NETCL_REFERENCE_COUNTING(_cl_command_queue, CommandQueue)
NETCL_REFERENCE_COUNTING(_cl_mem, MemObject)
NETCL_REFERENCE_COUNTING(_cl_event, Event)
NETCL_REFERENCE_COUNTING(_cl_program, Program)
NETCL_REFERENCE_COUNTING(_cl_kernel, Kernel)
#undef NETCL_REFERENCE_COUNTING

namespace cl {
namespace {

// Passed as the event argument of an enqueue; stores into `target` only when the caller wants it.
class EventSlot {
 public:
  explicit EventSlot(Event* target) : target_(target) {}
  cl_event* get() { return target_ == nullptr ? nullptr : &raw_; }
  void commit() {
    if (target_ != nullptr) *target_ = Event(Ref<_cl_event>::adopt(raw_));
  }

 private:
  Event* target_;
  cl_event raw_ = nullptr;
};

template <class T>
T context_value(const Api& cl, cl_context context, cl_context_info what) {
  T value{};
  check("clGetContextInfo", cl.GetContextInfo(context, what, sizeof value, &value, nullptr));
  return value;
}

template <class T>
T queue_value(const Api& cl, cl_command_queue queue, cl_command_queue_info what) {
  T value{};
  check("clGetCommandQueueInfo",
        cl.GetCommandQueueInfo(queue, what, sizeof value, &value, nullptr));
  return value;
}

}  // namespace

Ref<_cl_context> create_context(const Device& device) {
  const auto& cl = api("clCreateContext");
  const KeepSignalHandlers keep;
  cl_int code = CL_SUCCESS;
  cl_device_id id = device.get();
  auto* context = cl.CreateContext(nullptr, 1, &id, nullptr, nullptr, &code);
  check("clCreateContext", code);
  process::mark_driver_used();  // drivers load their compiler only now
  return Ref<_cl_context>::adopt(context);
}

std::vector<Device> context_devices(_cl_context* context) {
  const auto& cl = api("clGetContextInfo");
  const auto count = context_value<cl_uint>(cl, context, CL_CONTEXT_NUM_DEVICES);
  std::vector<cl_device_id> ids(count);
  check("clGetContextInfo",
        cl.GetContextInfo(context, CL_CONTEXT_DEVICES, ids.size() * sizeof(cl_device_id),
                          ids.data(), nullptr));
  return {ids.begin(), ids.end()};
}

Ref<_cl_command_queue> create_queue(_cl_context* context, const Device& device, bool profiling) {
  const auto& cl = api("clCreateCommandQueue");
  cl_int code = CL_SUCCESS;
  // The 1.2 call: every driver has it, and netcl wants nothing that only the 2.0 one offers.
  auto* queue = cl.CreateCommandQueue(context, device.get(),
                                      profiling ? CL_QUEUE_PROFILING_ENABLE : 0, &code);
  check("clCreateCommandQueue", code);
  return Ref<_cl_command_queue>::adopt(queue);
}

QueueInfo queue_info(_cl_command_queue* queue) {
  const auto& cl = api("clGetCommandQueueInfo");
  const auto properties = queue_value<cl_command_queue_properties>(cl, queue, CL_QUEUE_PROPERTIES);
  return {queue_value<cl_context>(cl, queue, CL_QUEUE_CONTEXT),
          Device(queue_value<cl_device_id>(cl, queue, CL_QUEUE_DEVICE)),
          (properties & CL_QUEUE_PROFILING_ENABLE) != 0,
          (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0};
}

namespace {

Buffer make_buffer(_cl_context* context, cl_mem_flags flags, std::size_t bytes, void* memory) {
  const auto& cl = api("clCreateBuffer");
  cl_int code = CL_SUCCESS;
  auto* buffer = cl.CreateBuffer(context, flags, bytes, memory, &code);
  check("clCreateBuffer", code);
  return Buffer(Ref<_cl_mem>::adopt(buffer), bytes);
}

}  // namespace

Buffer create_buffer(_cl_context* context, Memory kind, std::size_t bytes) {
  const cl_mem_flags host = kind == Memory::host_visible ? CL_MEM_ALLOC_HOST_PTR : 0;
  return make_buffer(context, CL_MEM_READ_WRITE | host, bytes, nullptr);
}

Buffer wrap_host_memory(_cl_context* context, void* memory, std::size_t bytes) {
  return make_buffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, memory);
}

Buffer own_host_memory(_cl_context* context, Pages memory, std::size_t bytes) {
  // Commands that still run keep the buffer after it was released.
  auto owned = std::make_unique<Pages>(std::move(memory));
  auto buffer = wrap_host_memory(context, owned->data(), bytes);
  const auto free_memory = [](cl_mem, void* pages) { delete static_cast<Pages*>(pages); };
  check("clSetMemObjectDestructorCallback",
        api("clSetMemObjectDestructorCallback")
            .SetMemObjectDestructorCallback(buffer.get(), free_memory, owned.get()));
  owned.release();
  return buffer;
}

Buffer create_sub_buffer(const Buffer& parent, std::size_t offset, std::size_t bytes) {
  const auto& cl = api("clCreateSubBuffer");
  cl_int code = CL_SUCCESS;
  const cl_buffer_region region{offset, bytes};
  auto* buffer = cl.CreateSubBuffer(parent.get(), 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  check("clCreateSubBuffer", code);
  return Buffer(Ref<_cl_mem>::adopt(buffer), bytes);
}

_cl_context* buffer_context(_cl_mem* buffer) {
  cl_context context = nullptr;
  check("clGetMemObjectInfo",
        api("clGetMemObjectInfo")
            .GetMemObjectInfo(buffer, CL_MEM_CONTEXT, sizeof context, &context, nullptr));
  return context;
}

std::mutex& enqueue_mutex(cl_command_queue queue) {
  // Striped by address: queues that share one only wait a few microseconds for each other.
  static auto* mutexes = new std::array<std::mutex, 64>();
  return (*mutexes)[(reinterpret_cast<std::uintptr_t>(queue) >> 6) % mutexes->size()];
}

void see_the_end(Queued queue) noexcept {
  if (const auto* cl = api_if_alive()) cl->Finish(queue);
}

namespace {

// Runs `enqueue(event)` under the queue's lock. A blocking command waits after the lock is
// released.
template <class Enqueue>
void submit(Queued queue, const char* call, bool blocking, Event* done, Enqueue&& enqueue) {
  Event own;
  EventSlot slot(blocking && done == nullptr ? &own : done);
  {
    const std::lock_guard lock(enqueue_mutex(queue));
    check(call, enqueue(slot.get()));
  }
  slot.commit();
  if (!blocking) return;
  try {
    wait_blocking((done == nullptr ? own : *done).get());
  } catch (...) {
    see_the_end(queue);
    throw;
  }
}

}  // namespace

void read(Queued queue, const Buffer& from, std::size_t offset, std::size_t bytes, void* to,
          bool blocking, Event* done) {
  const auto& cl = api("clEnqueueReadBuffer");
  if (is_recording()) [[unlikely]]
    t_recorder->host_read(t_reader == nullptr ? "to_host()" : t_reader);
  submit(queue, "clEnqueueReadBuffer", blocking, done, [&](cl_event* event) {
    return cl.EnqueueReadBuffer(queue, from.get(), CL_FALSE, offset, bytes, to, 0, nullptr, event);
  });
}

void write(Queued queue, const Buffer& to, std::size_t offset, std::size_t bytes, const void* from,
           bool blocking, Event* done) {
  const auto& cl = api("clEnqueueWriteBuffer");
  if (is_recording()) [[unlikely]]
    from = t_recorder->keep(from, bytes);
  submit(queue, "clEnqueueWriteBuffer", blocking, done, [&](cl_event* event) {
    return cl.EnqueueWriteBuffer(queue, to.get(), CL_FALSE, offset, bytes, from, 0, nullptr, event);
  });
  if (is_recording()) [[unlikely]]
    t_recorder->write(queue, to, offset, bytes, from);
}

void copy(Queued queue, const Buffer& from, std::size_t from_offset, const Buffer& to,
          std::size_t to_offset, std::size_t bytes, Event* done) {
  const auto& cl = api("clEnqueueCopyBuffer");
  submit(queue, "clEnqueueCopyBuffer", false, done, [&](cl_event* event) {
    return cl.EnqueueCopyBuffer(queue, from.get(), to.get(), from_offset, to_offset, bytes, 0,
                                nullptr, event);
  });
  if (is_recording()) [[unlikely]]
    t_recorder->copy(queue, from, from_offset, to, to_offset, bytes);
}

void fill(Queued queue, const Buffer& buffer, std::size_t offset, std::size_t bytes,
          const void* pattern, std::size_t pattern_bytes, Event* done) {
  const auto& cl = api("clEnqueueFillBuffer");
  submit(queue, "clEnqueueFillBuffer", false, done, [&](cl_event* event) {
    return cl.EnqueueFillBuffer(queue, buffer.get(), pattern, pattern_bytes, offset, bytes, 0,
                                nullptr, event);
  });
  if (is_recording()) [[unlikely]]
    t_recorder->fill(queue, buffer, offset, bytes, pattern, pattern_bytes);
}

void* map(Queued queue, const Buffer& buffer, std::size_t offset, std::size_t bytes) {
  const auto& cl = api("clEnqueueMapBuffer");
  void* pointer = nullptr;
  if (is_recording()) [[unlikely]]
    t_recorder->host_read("mapped memory");
  submit(queue, "clEnqueueMapBuffer", true, nullptr, [&](cl_event* event) {
    cl_int code = CL_SUCCESS;
    pointer = cl.EnqueueMapBuffer(queue, buffer.get(), CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, offset,
                                  bytes, 0, nullptr, event, &code);
    return code;
  });
  return pointer;
}

void unmap(Queued queue, const Buffer& buffer, void* pointer, Event* done) {
  const auto& cl = api("clEnqueueUnmapMemObject");
  submit(queue, "clEnqueueUnmapMemObject", false, done, [&](cl_event* event) {
    return cl.EnqueueUnmapMemObject(queue, buffer.get(), pointer, 0, nullptr, event);
  });
}

Event marker(Queued queue) {
  const auto& cl = api("clEnqueueMarkerWithWaitList");
  Event done;
  submit(queue, "clEnqueueMarkerWithWaitList", false, &done,
         [&](cl_event* event) { return cl.EnqueueMarkerWithWaitList(queue, 0, nullptr, event); });
  return done;
}

void barrier(Queued queue, WaitList wait_for) {
  std::vector<cl_event> events;
  for (const auto& event : wait_for)
    if (event) events.push_back(event.get());
  if (events.empty()) return;
  const auto& cl = api("clEnqueueBarrierWithWaitList");
  submit(queue, "clEnqueueBarrierWithWaitList", false, nullptr, [&](cl_event* event) {
    return cl.EnqueueBarrierWithWaitList(queue, static_cast<cl_uint>(events.size()), events.data(),
                                         event);
  });
}

void flush(Queued queue) { check("clFlush", api("clFlush").Flush(queue)); }
void finish(Queued queue) { check("clFinish", api("clFinish").Finish(queue)); }

Progress event_progress(_cl_event* event) {
  cl_int status = CL_COMPLETE;
  check("clGetEventInfo", api("clGetEventInfo")
                              .GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status,
                                            &status, nullptr));
  if (status < 0) raise(kAsynchronousCommand, status);
  return status == CL_COMPLETE ? Progress::complete : Progress::pending;
}

void wait_blocking(_cl_event* event) {
  check("clWaitForEvents", api("clWaitForEvents").WaitForEvents(1, &event));
}

bool call_at_end(_cl_event* event, std::function<void()> ended) {
  const auto& cl = api("clSetEventCallback");
  auto kept = std::make_unique<std::function<void()>>(std::move(ended));
  const auto call = [](cl_event, cl_int, void* given) {
    const std::unique_ptr<std::function<void()>> owned(static_cast<std::function<void()>*>(given));
    (*owned)();
  };
  if (cl.SetEventCallback(event, CL_COMPLETE, call, kept.get()) != CL_SUCCESS) return false;
  static_cast<void>(kept.release());  // the driver's now
  return true;
}

EventTimes event_times(_cl_event* event) {
  const auto& cl = api("clGetEventProfilingInfo");
  const auto ask = [&](cl_profiling_info what) {
    cl_ulong value = 0;
    check("clGetEventProfilingInfo",
          cl.GetEventProfilingInfo(event, what, sizeof value, &value, nullptr));
    return static_cast<std::uint64_t>(value);
  };
  return {ask(CL_PROFILING_COMMAND_QUEUED), ask(CL_PROFILING_COMMAND_SUBMIT),
          ask(CL_PROFILING_COMMAND_START), ask(CL_PROFILING_COMMAND_END)};
}

}  // namespace cl
}  // namespace netcl

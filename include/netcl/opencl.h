// Value types for OpenCL objects. Copies share the object; nothing here needs the OpenCL headers,
// and a build or machine without OpenCL has the same types. A default-constructed value is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// The opaque types of the OpenCL headers (cl_context is `struct _cl_context*`), named here so that
// users can pass their own objects in and out without a cast.
struct _cl_platform_id;
struct _cl_device_id;
struct _cl_context;
struct _cl_command_queue;
struct _cl_mem;
struct _cl_event;
struct _cl_program;
struct _cl_kernel;

namespace netcl {

// One reference to an OpenCL object. Unlike the wrappers of clhpp it makes no OpenCL call in a
// forked child or after exit began, where the driver is no longer usable.
template <class Object>
class Ref {
 public:
  Ref() = default;
  static Ref adopt(Object* object) {  // takes over the caller's reference
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  static Ref share(Object* object) {  // adds a reference
    retain(object);
    return adopt(object);
  }
  Ref(const Ref& other) : object_(other.object_) { retain(object_); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { release(object_); }

  Object* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Ref& other) const { return object_ == other.object_; }

 private:
  static void retain(Object* object) noexcept;
  static void release(Object* object) noexcept;
  Object* object_ = nullptr;
};

// An OpenCL device; empty for the CPU backend.
class Device {
 public:
  Device() = default;
  explicit Device(_cl_device_id* id) : id_(id) {}
  _cl_device_id* get() const { return id_; }
  std::uintptr_t int_ptr() const { return reinterpret_cast<std::uintptr_t>(id_); }
  explicit operator bool() const { return id_ != nullptr; }
  bool operator==(const Device& other) const = default;
  std::string name() const;

 private:
  _cl_device_id* id_ = nullptr;
};

// The completion of an enqueued command. An empty event is complete.
class Event {
 public:
  Event() = default;
  explicit Event(Ref<_cl_event> ref) : ref_(std::move(ref)) {}
  _cl_event* get() const { return ref_.get(); }
  std::uintptr_t int_ptr() const { return reinterpret_cast<std::uintptr_t>(ref_.get()); }
  explicit operator bool() const { return static_cast<bool>(ref_); }
  bool is_complete() const;  // throws DeviceError when the command failed
  void wait() const;         // interruptible; throws DeviceError when the command failed
  // Device time in nanoseconds between start and end; needs a queue with profiling.
  std::uint64_t start_ns() const;
  std::uint64_t end_ns() const;

 private:
  Ref<_cl_event> ref_;
};

class Buffer {
 public:
  Buffer() = default;
  Buffer(Ref<_cl_mem> ref, std::size_t bytes) : ref_(std::move(ref)), bytes_(bytes) {}
  _cl_mem* get() const { return ref_.get(); }
  std::uintptr_t int_ptr() const { return reinterpret_cast<std::uintptr_t>(ref_.get()); }
  std::size_t nbytes() const { return bytes_; }
  explicit operator bool() const { return static_cast<bool>(ref_); }

 private:
  Ref<_cl_mem> ref_;
  std::size_t bytes_ = 0;
};

struct ContextState;
struct QueueState;

class Context {
 public:
  Context() = default;
  explicit Context(std::shared_ptr<ContextState> state) : state_(std::move(state)) {}
  // Wraps a context made elsewhere (adds a reference); the same context gives the same state.
  static Context wrap(_cl_context* context);
  _cl_context* get() const;
  std::uintptr_t int_ptr() const { return reinterpret_cast<std::uintptr_t>(get()); }
  const std::vector<Device>& devices() const;
  explicit operator bool() const { return state_ != nullptr; }
  bool operator==(const Context& other) const { return state_ == other.state_; }
  ContextState& state() const { return *state_; }

 private:
  std::shared_ptr<ContextState> state_;
};

// Where work is sent: an in-order OpenCL command queue, or the CPU backend.
class Queue {
 public:
  Queue() = default;
  explicit Queue(std::shared_ptr<QueueState> state) : state_(std::move(state)) {}
  // Wraps a queue made elsewhere (adds a reference); it must be in order.
  static Queue wrap(_cl_command_queue* queue);
  static Queue create(const Context& context, const Device& device, bool profiling = false);

  bool is_cpu() const;
  const char* backend() const { return is_cpu() ? "cpu" : "cl"; }
  const std::string& name() const;  // the device's name
  Context context() const;          // empty for the CPU backend
  Device device() const;            // empty for the CPU backend
  bool has_profiling() const;
  _cl_command_queue* get() const;
  std::uintptr_t int_ptr() const { return reinterpret_cast<std::uintptr_t>(get()); }
  void finish() const;  // interruptible where a handler or a poll hook is installed
  void flush() const;
  explicit operator bool() const { return state_ != nullptr; }
  bool operator==(const Queue& other) const { return state_ == other.state_; }
  QueueState& state() const { return *state_; }
  const std::shared_ptr<QueueState>& shared_state() const { return state_; }

 private:
  std::shared_ptr<QueueState> state_;
};

// The queue of the CPU backend.
class CPUQueue : public Queue {
 public:
  explicit CPUQueue(const std::string& name = "cpu");
};

}  // namespace netcl

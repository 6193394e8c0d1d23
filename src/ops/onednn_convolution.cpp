// Convolutions by oneDNN's primitives, in the memory layout that each likes best. Making one
// compiles code, so they are kept. Version 3 of the library has another interface; with it the
// caller's own loops and products are used.
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/check.h"
#include "ops/onednn.h"

namespace netcl::onednn {

#if DNNL_VERSION_MAJOR == 2

namespace {

using Pass = Convolution::Pass;

template <class F>
F load(const char* name) {
  return reinterpret_cast<F>(symbol(name));
}

struct Api {
#define F(name) decltype(&::dnnl_##name) name = load<decltype(&::dnnl_##name)>("dnnl_" #name)
  F(engine_create);
  F(stream_create);
  F(stream_destroy);
  F(stream_wait);
  F(primitive_attr_create);
  F(primitive_attr_set_scratchpad_mode);
  F(memory_desc_init_by_tag);
  F(memory_desc_equal);
  F(memory_desc_get_size);
  F(memory_create);
  F(memory_destroy);
  F(dilated_convolution_forward_desc_init);
  F(dilated_convolution_backward_data_desc_init);
  F(dilated_convolution_backward_weights_desc_init);
  F(primitive_desc_create);
  F(primitive_desc_destroy);
  F(primitive_desc_query_md);
  F(reorder_primitive_desc_create);
  F(primitive_create);
  F(primitive_execute);
  F(primitive_destroy);
#undef F
};

const Api& api() {
  static const auto* const instance = new Api();
  return *instance;
}

void require(dnnl_status_t status, const char* what) {
  check(status == dnnl_success, "[conv2d] oneDNN's {} ended with status {}", what,
        static_cast<int>(status));
}

// The engine, and attributes that make primitives take their scratch memory from the caller: only
// then may several threads run one.
struct Context {
  dnnl_engine_t engine = nullptr;
  dnnl_primitive_attr_t attributes = nullptr;
  bool works = false;

  Context() {
    works = major_version() == DNNL_VERSION_MAJOR &&
            api().engine_create(&engine, dnnl_cpu, 0) == dnnl_success &&
            api().primitive_attr_create(&attributes) == dnnl_success &&
            api().primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user) ==
                dnnl_success;
  }
};

const Context& context() {
  static const auto* const instance = new Context();
  return *instance;
}

struct DescriptorDeleter {
  void operator()(dnnl_primitive_desc* p) const { api().primitive_desc_destroy(p); }
};
struct PrimitiveDeleter {
  void operator()(dnnl_primitive* p) const { api().primitive_destroy(p); }
};
struct StreamDeleter {
  void operator()(dnnl_stream* p) const { api().stream_destroy(p); }
};
struct MemoryDeleter {
  void operator()(dnnl_memory* p) const { api().memory_destroy(p); }
};
using Descriptor = std::unique_ptr<dnnl_primitive_desc, DescriptorDeleter>;
using Primitive = std::unique_ptr<dnnl_primitive, PrimitiveDeleter>;
using Stream = std::unique_ptr<dnnl_stream, StreamDeleter>;
using Memory = std::unique_ptr<dnnl_memory, MemoryDeleter>;

Primitive make_primitive(const Descriptor& descriptor) {
  dnnl_primitive_t made = nullptr;
  require(api().primitive_create(&made, descriptor.get()), "primitive_create");
  return Primitive(made);
}

// On a CPU a few bytes: one for each call is simpler than one for each thread, which may end.
Stream make_stream() {
  dnnl_stream_t made = nullptr;
  require(api().stream_create(&made, context().engine, dnnl_stream_default_flags), "stream");
  return Stream(made);
}

Memory memory_of(const dnnl_memory_desc_t& layout, void* data) {
  dnnl_memory_t made = nullptr;
  require(api().memory_create(&made, &layout, context().engine, data), "memory_create");
  return Memory(made);
}

// Memory of this thread that grows to what convolutions need; large pieces are given back.
class Scratch {
 public:
  void* get(std::size_t slot, std::size_t bytes) {
    auto& buffer = buffers_[slot];
    // oneDNN's kernels want lines of the cache.
    if (buffer.size() < bytes + kLine) buffer = std::vector<char>(bytes + kLine);
    const auto at = reinterpret_cast<std::uintptr_t>(buffer.data());
    return buffer.data() + (kLine - at % kLine) % kLine;
  }
  void trim() {
    for (auto& buffer : buffers_)
      if (buffer.size() > kKept) buffer = {};
  }

 private:
  static constexpr std::size_t kLine = 64, kKept = std::size_t{32} << 20;
  std::array<std::vector<char>, 4> buffers_;
};

Scratch& scratch_of_thread() {
  thread_local Scratch scratch;
  return scratch;
}

// One tensor of a convolution: as the caller has it, as the primitive wants it.
struct Side {
  int argument = 0;
  dnnl_memory_desc_t plain{}, wanted{};
  Primitive reorder;  // null: they are the same

  Side(int name, const dnnl_memory_desc_t& given, const dnnl_memory_desc_t& liked, bool is_result)
      : argument(name), plain(given), wanted(liked) {
    if (api().memory_desc_equal(&plain, &wanted) != 0) return;
    dnnl_primitive_desc_t made = nullptr;
    const auto &from = is_result ? wanted : plain, &to = is_result ? plain : wanted;
    require(api().reorder_primitive_desc_create(&made, &from, context().engine, &to,
                                                context().engine, nullptr),
            "reorder");
    reorder = make_primitive(Descriptor(made));
  }
};

struct Layouts {
  dnnl_memory_desc_t x{}, w{}, y{};
};

struct Geometry {
  std::array<dnnl_dim_t, 2> strides, dilations, padding;
  Layouts plain, any;

  explicit Geometry(const Convolution& c)
      : strides{c.stride_h, c.stride_w},
        dilations{c.dilation_h - 1, c.dilation_w - 1},
        padding{c.padding_h, c.padding_w} {
    const dnnl_dims_t x{c.N, c.C, c.H, c.W}, y{c.N, c.K, c.P, c.Q};
    const dnnl_dims_t w{c.K, c.C, c.R, c.S};
    const dnnl_dims_t grouped{c.groups, c.K / c.groups, c.C / c.groups, c.R, c.S};
    const bool is_grouped = c.groups != 1;
    const auto init = [](auto& layout, int rank, const dnnl_dims_t& sizes, auto tag) {
      require(api().memory_desc_init_by_tag(&layout, rank, sizes, dnnl_f32, tag), "memory_desc");
    };
    for (auto* layouts : {&plain, &any}) {
      const bool is_any = layouts == &any;
      init(layouts->x, 4, x, is_any ? dnnl_format_tag_any : dnnl_nchw);
      init(layouts->y, 4, y, is_any ? dnnl_format_tag_any : dnnl_nchw);
      if (is_grouped)
        init(layouts->w, 5, grouped, is_any ? dnnl_format_tag_any : dnnl_goihw);
      else
        init(layouts->w, 4, w, is_any ? dnnl_format_tag_any : dnnl_oihw);
    }
  }
};

// Null when oneDNN has no implementation.
Descriptor describe(const Geometry& g, Pass pass, const_dnnl_primitive_desc_t forward) {
  dnnl_convolution_desc_t what;
  const auto *strides = g.strides.data(), *dilations = g.dilations.data(),
             *padding = g.padding.data();
  auto status = dnnl_success;
  if (pass == Pass::forward)
    status = api().dilated_convolution_forward_desc_init(
        &what, dnnl_forward_training, dnnl_convolution_direct, &g.any.x, &g.any.w, nullptr,
        &g.any.y, strides, dilations, padding, padding);
  else if (pass == Pass::data)
    status = api().dilated_convolution_backward_data_desc_init(
        &what, dnnl_convolution_direct, &g.any.x, &g.any.w, &g.any.y, strides, dilations, padding,
        padding);
  else
    status = api().dilated_convolution_backward_weights_desc_init(
        &what, dnnl_convolution_direct, &g.any.x, &g.any.w, nullptr, &g.any.y, strides, dilations,
        padding, padding);
  dnnl_primitive_desc_t made = nullptr;
  if (status != dnnl_success ||
      api().primitive_desc_create(&made, &what, context().attributes, context().engine, forward) !=
          dnnl_success)
    return {};
  return Descriptor(made);
}

// What one Convolution needs: the primitive and the changes of layout around it.
class Plan {
 public:
  explicit Plan(const Convolution& c) {
    const Geometry g(c);
    auto descriptor = describe(g, Pass::forward, nullptr);
    if (descriptor && c.pass != Pass::forward) descriptor = describe(g, c.pass, descriptor.get());
    if (!descriptor) return;
    const auto side = [&](int argument, const dnnl_memory_desc_t& plain, dnnl_query_t query) {
      const auto* wanted = api().primitive_desc_query_md(descriptor.get(), query, 0);
      check(wanted != nullptr, "[conv2d] oneDNN does not say its layouts");
      sides_.emplace_back(argument, plain, *wanted, sides_.size() == 2);
    };
    if (c.pass == Pass::forward) {
      side(DNNL_ARG_SRC, g.plain.x, dnnl_query_src_md);
      side(DNNL_ARG_WEIGHTS, g.plain.w, dnnl_query_weights_md);
      side(DNNL_ARG_DST, g.plain.y, dnnl_query_dst_md);
    } else if (c.pass == Pass::data) {
      side(DNNL_ARG_DIFF_DST, g.plain.y, dnnl_query_diff_dst_md);
      side(DNNL_ARG_WEIGHTS, g.plain.w, dnnl_query_weights_md);
      side(DNNL_ARG_DIFF_SRC, g.plain.x, dnnl_query_diff_src_md);
    } else {
      side(DNNL_ARG_SRC, g.plain.x, dnnl_query_src_md);
      side(DNNL_ARG_DIFF_DST, g.plain.y, dnnl_query_diff_dst_md);
      side(DNNL_ARG_DIFF_WEIGHTS, g.plain.w, dnnl_query_diff_weights_md);
    }
    scratch_ = *api().primitive_desc_query_md(descriptor.get(), dnnl_query_scratchpad_md, 0);
    primitive_ = make_primitive(descriptor);
  }

  bool works() const { return primitive_ != nullptr; }

  void run(std::array<float*, 3> data) const {
    const auto own_stream = make_stream();
    auto* const stream = own_stream.get();
    auto& scratch = scratch_of_thread();
    std::array<Memory, 3> plain, wanted;
    std::array<dnnl_exec_arg_t, 4> arguments{};
    for (std::size_t i = 0; i < 3; ++i) {
      plain[i] = memory_of(sides_[i].plain, data[i]);
      if (sides_[i].reorder) {
        const auto bytes = api().memory_desc_get_size(&sides_[i].wanted);
        wanted[i] = memory_of(sides_[i].wanted, scratch.get(i, bytes));
        if (i < 2) reorder(stream, i, plain[i], wanted[i]);
      }
      arguments[i] = {sides_[i].argument, (wanted[i] ? wanted[i] : plain[i]).get()};
    }
    const auto own = memory_of(scratch_, scratch.get(3, api().memory_desc_get_size(&scratch_)));
    arguments[3] = {DNNL_ARG_SCRATCHPAD, own.get()};
    require(api().primitive_execute(primitive_.get(), stream, 4, arguments.data()), "execute");
    if (wanted[2]) reorder(stream, 2, wanted[2], plain[2]);
    require(api().stream_wait(stream), "stream_wait");
    scratch.trim();
  }

 private:
  void reorder(dnnl_stream_t stream, std::size_t i, const Memory& from, const Memory& to) const {
    const std::array<dnnl_exec_arg_t, 2> arguments{
        {{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}}};
    require(api().primitive_execute(sides_[i].reorder.get(), stream, 2, arguments.data()),
            "reorder");
  }

  std::vector<Side> sides_;  // two inputs and the result
  dnnl_memory_desc_t scratch_{};
  Primitive primitive_;
};

// Plans of the shapes seen; all are forgotten when there are too many.
std::shared_ptr<const Plan> plan_of(const Convolution& c) {
  constexpr std::size_t kMost = 512;
  static auto* const mutex = new std::mutex();
  static auto* const plans = new std::map<Convolution, std::shared_ptr<const Plan>>();
  const std::lock_guard lock(*mutex);
  if (const auto found = plans->find(c); found != plans->end()) return found->second;
  if (plans->size() >= kMost) plans->clear();
  return plans->emplace(c, std::make_shared<const Plan>(c)).first->second;
}

}  // namespace

bool convolve(const Convolution& c, const float* first, const float* second, float* result) {
  if (!context().works) return false;
  const auto plan = plan_of(c);
  if (!plan->works()) return false;
  plan->run({const_cast<float*>(first), const_cast<float*>(second), result});
  return true;
}

#else

bool convolve(const Convolution&, const float*, const float*, float*) { return false; }

#endif

}  // namespace netcl::onednn

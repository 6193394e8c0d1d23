// Layers and networks. A Module owns parameters, buffers and other modules; its output is a
// function of its input, which a Tape can follow. Layers are made on the active device of the
// thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "netcl/kernel.h"
#include "netcl/ops.h"
#include "netcl/tensor.h"

namespace netcl::nn {

// ---- random numbers: initial weights and dropout. Every draw has a number of its own, so a run
// that restores the state draws what the uninterrupted one would have drawn.
struct RandomState {
  std::uint64_t seed = 0;
  std::uint64_t draws = 0;
  bool operator==(const RandomState&) const = default;
};
void manual_seed(std::uint64_t seed);
RandomState random_state();
void set_random_state(RandomState state);
std::uint64_t next_seed();  // thread-safe

// ---- modules
struct NamedTensor {
  std::string name;  // "layer1.0.weight"
  Tensor tensor;
};

// What a layer was made with, for printing and for files of models.
using ConfigValue =
    std::variant<bool, std::int64_t, double, std::vector<std::int64_t>, std::string>;
using Config = std::vector<std::pair<std::string, ConfigValue>>;

// A kernel as a module launched it, for Autotuner::add and for looking at.
struct KernelLaunch {
  std::string name;
  Kernel kernel;
  WorkSize global_size, local_size;
  // As they were; their memory lives as long as this does, but its values may be others' by then.
  std::vector<KernelArg> arguments;
  bool is_free = false;  // the local size is not part of the algorithm: another one may be tried
  std::shared_ptr<const void> memory;
};

class Module;
using ModulePtr = std::shared_ptr<Module>;

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  virtual std::string type() const = 0;  // "Conv2d"
  virtual Config config() const { return {}; }
  virtual Tensor forward(const Tensor& x) = 0;
  Tensor operator()(const Tensor& x);

  std::vector<Tensor> parameters() const;
  std::vector<NamedTensor> named_parameters() const;
  std::vector<NamedTensor> named_buffers() const;
  const std::vector<std::pair<std::string, ModulePtr>>& children() const { return children_; }
  std::int64_t parameter_count() const;

  // Parameters and buffers. The tensors are the module's own, not copies.
  std::vector<NamedTensor> state_dict() const;
  // Copies the values. Names, shapes and dtypes must fit; unless strict, others are left alone.
  void load_state_dict(const std::vector<NamedTensor>& state, bool strict = true);

  Module& train(bool on = true);
  Module& eval() { return train(false); }
  bool is_training() const { return training_; }
  // Moves everything; optimisers are to be made afterwards.
  Module& to(const Queue& queue);
  Module& to(std::string_view selector);
  Module& astype(DType dtype);      // of floating parameters and buffers, likewise
  void set_requires_grad(bool on);  // of all parameters
  void zero_grad() const;

  // The kernels that forward(x) launches, in order: it is run once, in evaluation mode and unseen
  // by tapes. None on the CPU backend.
  std::vector<KernelLaunch> kernels(const Tensor& x);
  // For zeros of the shape, dtype and device that operator() was last called with.
  std::vector<KernelLaunch> kernels();
  void remember_input(const Tensor& x);  // what operator() does for kernels()

  std::string to_string() const;  // the tree, one line per module
  std::string describe() const;   // "Conv2d(in=1, out=16, kernel=[3, 3])"

 protected:
  // They stay members of the derived class; to() replaces them in place.
  void add_parameter(std::string name, Tensor& member);
  void add_buffer(std::string name, Tensor& member);
  void add_module(std::string name, ModulePtr module);
  bool forget(const std::string& name);  // takes one of these out again; false: there was none

 private:
  friend struct ModuleAccess;
  std::vector<std::pair<std::string, Tensor*>> parameters_, buffers_;
  std::vector<std::pair<std::string, ModulePtr>> children_;
  bool training_ = true;
  struct Input;
  std::atomic<std::shared_ptr<const Input>> last_input_;  // one model may serve several threads
};

template <class T, class... Args>
std::shared_ptr<T> make(Args&&... args) {
  return std::make_shared<T>(std::forward<Args>(args)...);
}

// One after the other; an error says in which layer it was.
class Sequential : public Module {
 public:
  explicit Sequential(std::vector<ModulePtr> modules = {});
  void append(ModulePtr module);
  std::string type() const override { return "Sequential"; }
  Tensor forward(const Tensor& x) override;
};

// ---- initial values, in place
namespace init {
void zeros(const Tensor& tensor);
void ones(const Tensor& tensor);
void constant(const Tensor& tensor, double value);
void uniform(const Tensor& tensor, double low, double high);
void normal(const Tensor& tensor, double mean = 0, double deviation = 1);
// Fans are taken from the shape: (out, in), (out, in, height, width).
void kaiming_uniform(const Tensor& tensor, double slope = 2.23606797749979);  // sqrt(5)
void kaiming_normal(const Tensor& tensor, double slope = 0);
void xavier_uniform(const Tensor& tensor, double gain = 1);
void xavier_normal(const Tensor& tensor, double gain = 1);
}  // namespace init

// ---- layers
class Linear : public Module {
 public:
  Linear(std::int64_t in, std::int64_t out, bool bias = true);
  std::string type() const override { return "Linear"; }
  Config config() const override;
  Tensor forward(const Tensor& x) override;  // (..., in)
  Tensor weight, bias;                       // (out, in), (out)
};

class Conv2d : public Module {
 public:
  Conv2d(std::int64_t in, std::int64_t out, ops::Pair kernel, ops::Conv2dOptions options = {},
         bool bias = true);
  std::string type() const override { return "Conv2d"; }
  Config config() const override;
  Tensor forward(const Tensor& x) override;  // (N, in, H, W)
  Tensor weight, bias;                       // (out, in / groups, height, width), (out)
  const ops::Conv2dOptions options;
};

class ConvTranspose2d : public Module {
 public:
  ConvTranspose2d(std::int64_t in, std::int64_t out, ops::Pair kernel,
                  ops::ConvTranspose2dOptions options = {}, bool bias = true);
  std::string type() const override { return "ConvTranspose2d"; }
  Config config() const override;
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias;  // (in, out / groups, height, width), (out)
  const ops::ConvTranspose2dOptions options;
};

// Over the batch, per channel. When training it uses the batch's statistics and keeps running ones:
// running = (1 - momentum) * running + momentum * batch, of the unbiased variance.
class BatchNorm : public Module {
 public:
  Config config() const override;
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias, running_mean, running_var;
  const double eps, momentum;

 protected:
  BatchNorm(std::int64_t channels, double epsilon, double rate);
  virtual void check_input(const Tensor& x) const = 0;
};
class BatchNorm1d : public BatchNorm {
 public:
  explicit BatchNorm1d(std::int64_t channels, double epsilon = 1e-5, double rate = 0.1)
      : BatchNorm(channels, epsilon, rate) {}
  std::string type() const override { return "BatchNorm1d"; }

 private:
  void check_input(const Tensor& x) const override;  // (N, C) or (N, C, L)
};
class BatchNorm2d : public BatchNorm {
 public:
  explicit BatchNorm2d(std::int64_t channels, double epsilon = 1e-5, double rate = 0.1)
      : BatchNorm(channels, epsilon, rate) {}
  std::string type() const override { return "BatchNorm2d"; }

 private:
  void check_input(const Tensor& x) const override;  // (N, C, H, W)
};

class LayerNorm : public Module {
 public:
  explicit LayerNorm(std::vector<std::int64_t> shape, double epsilon = 1e-5);
  std::string type() const override { return "LayerNorm"; }
  Config config() const override;
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias;
  const double eps;
};

class RMSNorm : public Module {
 public:
  explicit RMSNorm(std::int64_t size, double epsilon = 1e-6);
  std::string type() const override { return "RMSNorm"; }
  Config config() const override;
  Tensor forward(const Tensor& x) override;
  Tensor weight;
  const double eps;
};

class GroupNorm : public Module {
 public:
  GroupNorm(std::int64_t count, std::int64_t channels, double epsilon = 1e-5);
  std::string type() const override { return "GroupNorm"; }
  Config config() const override;
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias;
  const std::int64_t groups;
  const double eps;
};

class Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5);
  std::string type() const override { return "Dropout"; }
  Config config() const override;
  Tensor forward(const Tensor& x) override;  // x itself unless training
  const double p;
};

class MaxPool2d : public Module {
 public:
  explicit MaxPool2d(ops::Pair window, ops::PoolOptions options = {});
  std::string type() const override { return "MaxPool2d"; }
  Config config() const override;
  Tensor forward(const Tensor& x) override;
  const ops::Pair window;
  const ops::PoolOptions options;
};

class AvgPool2d : public Module {
 public:
  explicit AvgPool2d(ops::Pair window, ops::PoolOptions options = {});
  std::string type() const override { return "AvgPool2d"; }
  Config config() const override;
  Tensor forward(const Tensor& x) override;
  const ops::Pair window;
  const ops::PoolOptions options;
};

class AdaptiveAvgPool2d : public Module {
 public:
  explicit AdaptiveAvgPool2d(ops::Pair size);
  std::string type() const override { return "AdaptiveAvgPool2d"; }
  Config config() const override;
  Tensor forward(const Tensor& x) override;
  const ops::Pair size;
};

// (N, ...) to (N, the rest)
class Flatten : public Module {
 public:
  std::string type() const override { return "Flatten"; }
  Tensor forward(const Tensor& x) override;
};

// relu, gelu, gelu_tanh, silu, sigmoid, tanh, leaky_relu, elu, softplus, mish, hard_sigmoid,
// hard_swish, softmax, log_softmax.
class Activation : public Module {
 public:
  explicit Activation(std::string function);
  std::string type() const override { return "Activation"; }
  Config config() const override;
  Tensor forward(const Tensor& x) override;
  const std::string function;

 private:
  std::function<Tensor(const Tensor&)> apply_;
};
ModulePtr relu();
ModulePtr gelu();
ModulePtr silu();
ModulePtr sigmoid();
ModulePtr tanh();

// Indices to rows of a table.
class Embedding : public Module {
 public:
  Embedding(std::int64_t rows, std::int64_t width);
  std::string type() const override { return "Embedding"; }
  Config config() const override;
  Tensor forward(const Tensor& indices) override;
  Tensor weight;
};

// Attention of x (N, L, width) to itself, or to another sequence.
class MultiheadAttention : public Module {
 public:
  MultiheadAttention(std::int64_t width, std::int64_t heads, bool causal = false, bool bias = true);
  std::string type() const override { return "MultiheadAttention"; }
  Config config() const override;
  Tensor forward(const Tensor& x) override { return attend(x, x, x); }
  // mask as in ops::scaled_dot_product_attention, broadcast to (N, heads, L, S).
  Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value,
                const Tensor& mask = {});
  const std::shared_ptr<Linear> to_query, to_key, to_value, to_out;
  const std::int64_t heads;
  const bool causal;
};

// x + attention(norm(x)), then x + feed-forward(norm(x)).
class TransformerBlock : public Module {
 public:
  struct Options {
    std::int64_t hidden = 0;  // of the feed-forward part; 0: four times the width
    double dropout = 0;
    bool causal = false;
  };
  TransformerBlock(std::int64_t width, std::int64_t heads)
      : TransformerBlock(width, heads, Options()) {}
  TransformerBlock(std::int64_t width, std::int64_t heads, const Options& options);
  std::string type() const override { return "TransformerBlock"; }
  Config config() const override;
  Tensor forward(const Tensor& x) override;  // (N, L, width)

 private:
  std::int64_t width_, heads_;
  Options options_;
  std::shared_ptr<LayerNorm> norm1_, norm2_;
  std::shared_ptr<MultiheadAttention> attention_;
  std::shared_ptr<Sequential> feed_forward_;
  std::shared_ptr<Dropout> dropout_;
};

// ---- networks
// x (N, channels, H, W) to logits (N, classes). Depth 18 or 34 (two convolutions per block) or 50
// (three). `small_images`: a 3x3 stem without pooling, for images of about 32x32.
struct ResNetOptions {
  int depth = 18;
  std::int64_t classes = 1000, channels = 3, width = 64;
  bool small_images = false;
};
ModulePtr resnet(const ResNetOptions& options);
ModulePtr resnet18(std::int64_t classes, std::int64_t channels = 3, bool small_images = false);
ModulePtr resnet34(std::int64_t classes, std::int64_t channels = 3, bool small_images = false);
ModulePtr resnet50(std::int64_t classes, std::int64_t channels = 3, bool small_images = false);

// A small language model: indices (N, L) to logits (N, L, vocabulary), each place seeing those
// before it.
class GPT : public Module {
 public:
  struct Options {
    std::int64_t vocabulary = 256, context = 128, layers = 4, heads = 4, width = 128;
    double dropout = 0;
  };
  explicit GPT(const Options& options);
  std::string type() const override { return "GPT"; }
  Config config() const override;
  Tensor forward(const Tensor& indices) override;
  // `count` further indices after `start`, drawn with a seed; temperature 0 takes the likeliest.
  std::vector<std::int64_t> generate(std::vector<std::int64_t> start, std::int64_t count,
                                     double temperature, std::uint64_t seed);
  const Options& options() const { return options_; }

 private:
  Options options_;
  std::shared_ptr<Embedding> tokens_, positions_;
  std::vector<std::shared_ptr<TransformerBlock>> blocks_;
  std::shared_ptr<LayerNorm> norm_;
  std::shared_ptr<Linear> head_;
};

// A model as text: {"type": "Sequential", "layers": [{"type": "Conv2d", "in": 1, ...}, ...]}. The
// layers are those above; FormatError names the layer and what is wrong with it.
ModulePtr from_json(const std::string& text);
std::string to_json(const Module& module);

// A model as an ONNX file (operators of version 17, float32), for inputs like `example`: its first
// axis is the batch, whose size is left open; the other sizes are fixed. The input is called
// "input" and the result "output". ArgumentError for a layer that ONNX cannot express.
struct OnnxOptions {
  // Of images, per channel: the input is uint8, and the model sees pixel * scale + shift.
  std::vector<float> scale, shift;
  std::vector<std::pair<std::string, std::string>> metadata;
};
void save_onnx(const std::string& path, Module& module, const Tensor& example,
               const OnnxOptions& options = {});

// ---- losses; `prediction` and `target` broadcast
using ops::cross_entropy;
using ops::Reduction;
Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction how = Reduction::mean);
Tensor l1_loss(const Tensor& prediction, const Tensor& target, Reduction how = Reduction::mean);
// Quadratic below beta, linear above, with the same slope.
Tensor smooth_l1_loss(const Tensor& prediction, const Tensor& target, double beta = 1,
                      Reduction how = Reduction::mean);
Tensor huber_loss(const Tensor& prediction, const Tensor& target, double delta = 1,
                  Reduction how = Reduction::mean);
// Targets are probabilities; positive ones count `positive_weight` times.
Tensor bce_with_logits_loss(const Tensor& logits, const Tensor& target, double positive_weight = 1,
                            Reduction how = Reduction::mean);
Tensor bce_loss(const Tensor& probability, const Tensor& target, Reduction how = Reduction::mean);
Tensor nll_loss(const Tensor& log_probabilities, const Tensor& labels,
                Reduction how = Reduction::mean);
// target * (log(target) - log_probabilities)
Tensor kl_div_loss(const Tensor& log_probabilities, const Tensor& target,
                   Reduction how = Reduction::mean);
Tensor hinge_loss(const Tensor& prediction, const Tensor& sign, Reduction how = Reduction::mean);

}  // namespace netcl::nn

// Attention, the transformer's block, and a small language model of them.
#include <algorithm>
#include <random>

#include "nn/eval_scope.h"
#include "nn/support.h"

namespace netcl::nn {

// ---- MultiheadAttention

MultiheadAttention::MultiheadAttention(std::int64_t width, std::int64_t head_count, bool is_causal,
                                       bool bias)
    : to_query(make<Linear>(width, width, bias)),
      to_key(make<Linear>(width, width, bias)),
      to_value(make<Linear>(width, width, bias)),
      to_out(make<Linear>(width, width, bias)),
      heads(head_count),
      causal(is_causal) {
  check_positive("MultiheadAttention", "heads", heads);
  check<ArgumentError>(width % heads == 0,
                       "[MultiheadAttention] heads must divide the width: {} of {}", heads, width);
  add_module("to_query", to_query);
  add_module("to_key", to_key);
  add_module("to_value", to_value);
  add_module("to_out", to_out);
}

Config MultiheadAttention::config() const {
  return {{"width", to_out->weight.size(0)},
          {"heads", heads},
          {"causal", causal},
          {"bias", static_cast<bool>(to_out->bias)}};
}

Tensor MultiheadAttention::attend(const Tensor& query, const Tensor& key, const Tensor& value,
                                  const Tensor& mask) {
  const auto width = to_out->weight.size(0);
  check<ShapeError>(query.ndim() == 3 && query.size(2) == width,
                    "[MultiheadAttention] the input must be (N, L, {}): {}", width,
                    query.shape().to_string());
  // (N, L, width) to (N, heads, L, width / heads)
  const auto split = [&](const Tensor& x) {
    return ops::permute(ops::reshape(x, {x.size(0), x.size(1), heads, width / heads}),
                        {0, 2, 1, 3});
  };
  const auto y = ops::scaled_dot_product_attention(split((*to_query)(query)), split((*to_key)(key)),
                                                   split((*to_value)(value)), mask, causal);
  const auto joined =
      ops::reshape(ops::permute(y, {0, 2, 1, 3}), {query.size(0), query.size(1), width});
  return (*to_out)(joined);
}

// ---- TransformerBlock

TransformerBlock::TransformerBlock(std::int64_t width, std::int64_t heads, const Options& options)
    : width_(width), heads_(heads), options_(options) {
  const auto hidden = options.hidden > 0 ? options.hidden : 4 * width;
  norm1_ = make<LayerNorm>(std::vector<std::int64_t>{width});
  attention_ = make<MultiheadAttention>(width, heads, options.causal);
  norm2_ = make<LayerNorm>(std::vector<std::int64_t>{width});
  feed_forward_ = make<Sequential>(
      std::vector<ModulePtr>{make<Linear>(width, hidden), gelu(), make<Linear>(hidden, width)});
  dropout_ = make<Dropout>(options.dropout);
  add_module("norm1", norm1_);
  add_module("attention", attention_);
  add_module("norm2", norm2_);
  add_module("feed_forward", feed_forward_);
  add_module("dropout", dropout_);
}

Config TransformerBlock::config() const {
  return {{"width", width_},
          {"heads", heads_},
          {"hidden", options_.hidden},
          {"dropout", options_.dropout},
          {"causal", options_.causal}};
}

Tensor TransformerBlock::forward(const Tensor& x) {
  const auto y = x + (*dropout_)((*attention_)((*norm1_)(x)));
  return y + (*dropout_)((*feed_forward_)((*norm2_)(y)));
}

// ---- GPT

GPT::GPT(const Options& options) : options_(options) {
  check_positive("GPT", "vocabulary", options.vocabulary);
  check_positive("GPT", "context", options.context);
  check_positive("GPT", "layers", options.layers);
  tokens_ = make<Embedding>(options.vocabulary, options.width);
  positions_ = make<Embedding>(options.context, options.width);
  init::normal(tokens_->weight, 0, 0.02);
  init::normal(positions_->weight, 0, 0.02);
  add_module("tokens", tokens_);
  add_module("positions", positions_);
  for (std::int64_t i = 0; i < options.layers; ++i) {
    blocks_.push_back(make<TransformerBlock>(
        options.width, options.heads,
        TransformerBlock::Options{.dropout = options.dropout, .causal = true}));
    add_module("block" + std::to_string(i), blocks_.back());
  }
  norm_ = make<LayerNorm>(std::vector<std::int64_t>{options.width});
  head_ = make<Linear>(options.width, options.vocabulary, false);
  add_module("norm", norm_);
  add_module("head", head_);
}

Config GPT::config() const {
  return {{"vocabulary", options_.vocabulary}, {"context", options_.context},
          {"layers", options_.layers},         {"heads", options_.heads},
          {"width", options_.width},           {"dropout", options_.dropout}};
}

Tensor GPT::forward(const Tensor& indices) {
  check<ShapeError>(indices.ndim() == 2 && indices.size(1) <= options_.context,
                    "[GPT] the indices must be (N, L) with L at most {}: {}", options_.context,
                    indices.shape().to_string());
  const auto length = indices.size(1);
  auto x = (*tokens_)(indices) + ops::narrow(positions_->weight, 0, 0, length);
  for (const auto& block : blocks_) x = (*block)(x);
  return (*head_)((*norm_)(x));
}

std::vector<std::int64_t> GPT::generate(std::vector<std::int64_t> start, std::int64_t count,
                                        double temperature, std::uint64_t seed) {
  check<ArgumentError>(!start.empty(), "[GPT] generating needs at least one index to start with");
  check<ArgumentError>(temperature >= 0, "[GPT] the temperature must not be negative: {}",
                       temperature);
  const EvalScope asked(*this);
  std::mt19937_64 random(seed);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto length =
        std::min<std::int64_t>(static_cast<std::int64_t>(start.size()), options_.context);
    const std::vector<std::int64_t> seen(start.end() - length, start.end());
    const auto logits =
        forward(Tensor::from_host(head_->weight.queue(), HostView(seen, Shape{1, length})));
    const auto last = logits.select(1, -1).reshape({options_.vocabulary});
    if (temperature == 0) {
      start.push_back(static_cast<std::int64_t>(ops::argmax(last).item()));
      continue;
    }
    const auto likely = ops::softmax(last / temperature).to_vector<double>();
    double left = static_cast<double>(random() >> 11) * 0x1p-53;
    std::size_t drawn = 0;
    while (drawn + 1 < likely.size() && (left -= likely[drawn]) >= 0) ++drawn;
    start.push_back(static_cast<std::int64_t>(drawn));
  }
  return start;
}

}  // namespace netcl::nn

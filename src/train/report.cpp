// The report of a run as one HTML page: no scripts, no other files, pictures as inline SVG and PNG.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/page.h"
#include "data/planes.h"
#include "netcl/io.h"
#include "netcl/train.h"
#include "train/report_parts.h"

namespace netcl::train {
namespace {

constexpr std::string_view kStyle =
    R"(.matrix td,.matrix th{text-align:center;padding:.25rem .45rem;border:1px solid var(--line);font-variant-numeric:tabular-nums}
.big{font-size:2.2rem;font-weight:600}
.samples{display:grid;grid-template-columns:repeat(auto-fill,minmax(6.5rem,1fr));gap:.8rem}
figure{margin:0;text-align:center;font-size:.85rem}figure img{width:100%;image-rendering:pixelated;border:3px solid rgb(var(--good));box-sizing:border-box}
figure.wrong img{border-color:rgb(var(--bad))}
.bar{display:inline-block;height:.6rem;margin-left:.5rem;background:var(--first);border-radius:2px;vertical-align:baseline}
@media(max-width:36rem){.matrix{font-size:.72rem}.matrix td,.matrix th{padding:.15rem .22rem}}
)";

std::string settings_table(const Report& report) {
  std::string text = "<h2>Settings</h2><div class=\"wide\"><table>\n";
  for (const auto& [name, value] : report.settings)
    text += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", html_text(name), html_text(value));
  return text + "</table></div>\n";
}

std::string curves(const Report& report) {
  Plot loss{"loss", {}, {}}, accuracy{"accuracy in %", {}, {}};
  for (const auto& point : report.curve) {
    loss.train.push_back({static_cast<double>(point.step), point.loss});
    accuracy.train.push_back({static_cast<double>(point.step), 100 * point.accuracy});
  }
  const auto last = report.curve.empty() ? 0 : report.curve.back().step;
  const auto epochs = static_cast<double>(std::max<std::size_t>(report.history.size(), 1));
  for (const auto& record : report.history) {
    if (!record.tested) continue;
    const double step = static_cast<double>(last) * static_cast<double>(record.epoch) / epochs;
    loss.test.push_back({step, record.test_loss});
    accuracy.test.push_back({step, 100 * record.test_accuracy});
  }
  return "<h2>Curves</h2><p class=\"soft\"><span style=\"color:var(--first)\">&#9632;</span> "
         "training, "
         "by step &nbsp; <span style=\"color:var(--second)\">&#9632;</span> test, after each "
         "epoch</p><div class=\"plots\">" +
         svg_of(loss) + svg_of(accuracy) + "</div>\n";
}

std::string epochs_table(const Report& report) {
  std::string text =
      "<h2>Epochs</h2><div class=\"wide\"><table><tr><th class=\"n\">epoch</th><th "
      "class=\"n\">loss</th><th class=\"n\">accuracy</th><th class=\"n\">test loss</th><th "
      "class=\"n\">test accuracy</th><th class=\"n\">seconds</th></tr>\n";
  for (const auto& r : report.history) {
    const auto cell = [&](const std::string& value) {
      return "<td class=\"n\">" + value + "</td>";
    };
    text += "<tr>" + cell(fmt::format("{}", r.epoch)) + cell(fmt::format("{:.4f}", r.loss)) +
            cell(fmt::format("{:.2f} %", 100 * r.accuracy)) +
            cell(r.tested ? fmt::format("{:.4f}", r.test_loss) : "-") +
            cell(r.tested ? fmt::format("{:.2f} %", 100 * r.test_accuracy) : "-") +
            cell(fmt::format("{:.1f}", r.seconds)) + "</tr>\n";
  }
  return text + "</table></div>\n";
}

std::string confusion_table(const Evaluation& e) {
  constexpr std::size_t kMostClasses = 40;
  if (e.classes.size() > kMostClasses) return {};
  std::string text =
      "<h2>Confusion matrix</h2><p class=\"soft\">Rows: the true class. Columns: the answers.</p>"
      "<div class=\"wide\"><table class=\"matrix\"><tr><th></th>";
  for (const auto& name : e.classes) text += "<th>" + html_text(name) + "</th>";
  text += "<th>right</th></tr>\n";
  std::int64_t most_wrong = 1;  // of the whole matrix: equal colours are equal numbers
  for (std::size_t truth = 0; truth < e.classes.size(); ++truth)
    for (std::size_t k = 0; k < e.classes.size(); ++k)
      if (k != truth) most_wrong = std::max(most_wrong, e.count(truth, k));
  for (std::size_t truth = 0; truth < e.classes.size(); ++truth) {
    std::int64_t all = 0;
    for (std::size_t k = 0; k < e.classes.size(); ++k) all += e.count(truth, k);
    text += "<tr><th>" + html_text(e.classes[truth]) + "</th>";
    for (std::size_t k = 0; k < e.classes.size(); ++k) {
      const auto count = e.count(truth, k);
      const double share =
          k == truth
              ? static_cast<double>(count) / static_cast<double>(std::max<std::int64_t>(all, 1))
              : static_cast<double>(count) / static_cast<double>(most_wrong);
      text += fmt::format("<td style=\"background:rgba(var(--{}),{:.2f})\">{}</td>",
                          k == truth ? "good" : "bad", 0.45 * share,
                          count == 0 ? std::string() : std::to_string(count));
    }
    text += all == 0 ? std::string("<td></td></tr>\n")
                     : fmt::format("<td>{:.2f} %</td></tr>\n",
                                   100.0 * static_cast<double>(e.count(truth, truth)) /
                                       static_cast<double>(all));
  }
  return text + "</table></div>\n";
}

std::string pictures(const Report& report, const std::vector<std::string>& classes) {
  if (report.samples.empty()) return {};
  const auto name = [&](std::size_t i) {
    return i < classes.size() ? html_text(classes[i]) : std::to_string(i);
  };
  std::string text =
      "<h2>Sample predictions</h2><p class=\"soft\">The first test images, then some that the "
      "model gets wrong.</p><div class=\"samples\">\n";
  for (const auto& sample : report.samples) {
    const bool right = sample.truth == sample.answer;
    const auto channels = sample.image.shape()[0];
    if (channels != 1 && channels != 3) continue;
    const auto png = io::encode_png(data_detail::to_pixels(sample.image));
    text += fmt::format(
        "<figure{}><img alt=\"{}\" src=\"data:image/png;base64,{}\"><figcaption>{} {:.1f} "
        "%{}</figcaption></figure>\n",
        right ? "" : " class=\"wrong\"", name(sample.truth), base64(png), name(sample.answer),
        100 * sample.probability, right ? std::string() : "<br>is " + name(sample.truth));
  }
  return text + "</div>\n";
}

std::string kernel_table(const std::vector<KernelSummary>& kernels) {
  if (kernels.empty()) return {};
  constexpr std::size_t kShown = 25;
  constexpr double kBar = 10;  // rem, of all the time
  double all = 0;
  for (const auto& kernel : kernels) all += kernel.total_ms;
  std::string text = "<h2>Kernels</h2><p class=\"soft\">Of some steps of the training";
  text += all > 0 ? "." : "; the queue has no times, so they are counted only.";
  text += "</p><div class=\"wide\"><table><tr><th>kernel</th><th class=\"n\">launches</th>";
  if (all > 0)
    text += "<th class=\"n\">total ms</th><th class=\"n\">mean &micro;s</th><th>share</th>";
  text += "</tr>\n";
  for (std::size_t i = 0; i < std::min(kShown, kernels.size()); ++i) {
    const auto& kernel = kernels[i];
    text +=
        fmt::format("<tr><td>{}</td><td class=\"n\">{}</td>", html_text(kernel.name), kernel.count);
    if (all > 0)
      text += fmt::format(
          "<td class=\"n\">{:.2f}</td><td class=\"n\">{:.1f}</td><td>{:.1f} %<span class=\"bar\" "
          "style=\"width:{:.2f}rem\"></span></td>",
          kernel.total_ms, kernel.mean_us, 100 * kernel.total_ms / all,
          kBar * kernel.total_ms / all);
    text += "</tr>\n";
  }
  return text + "</table></div>\n";
}

}  // namespace

std::vector<Report::Sample> sample_predictions(const Classifier& classifier,
                                               const data::Dataset& dataset, std::size_t count) {
  constexpr std::int64_t kLooked = 2000;  // for wrong answers
  const auto most = std::min(dataset.size(), kLooked);
  const auto first = (count + 1) / 2;
  std::vector<Report::Sample> right, wrong;
  for (std::int64_t begin = 0; begin < most && right.size() + wrong.size() < count; begin += 256) {
    std::vector<HostArray> images;
    std::vector<std::size_t> labels;
    for (auto i = begin; i < std::min<std::int64_t>(begin + 256, most); ++i) {
      auto sample = dataset.sample(i);
      images.push_back(sample.image);
      labels.push_back(static_cast<std::size_t>(sample.label));
    }
    const auto answers = predict(classifier, images);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const auto best = std::max_element(answers[i].begin(), answers[i].end());
      const Report::Sample one{images[i], labels[i],
                               static_cast<std::size_t>(best - answers[i].begin()), *best};
      if (static_cast<std::size_t>(begin) + i < first)
        right.push_back(one);
      else if (one.truth != one.answer && right.size() + wrong.size() < count)
        wrong.push_back(one);
    }
  }
  right.insert(right.end(), wrong.begin(), wrong.end());
  return right;
}

std::string report_html(const Report& report) {
  std::string page;
  page += "<h1>" + html_text(report.title) + "</h1>\n";
  if (report.evaluation)
    page += fmt::format(
        "<p><span class=\"big\">{:.2f} %</span> test accuracy <span class=\"soft\">({} images, "
        "loss {:.4f})</span></p>\n",
        100 * report.evaluation->accuracy, report.evaluation->samples, report.evaluation->loss);
  page += curves(report) + epochs_table(report);
  if (report.evaluation) page += confusion_table(*report.evaluation);
  page +=
      pictures(report, report.evaluation ? report.evaluation->classes : std::vector<std::string>{});
  page += kernel_table(report.kernels) + settings_table(report);
  return html_page("netcl training report", kStyle, page);
}

}  // namespace netcl::train

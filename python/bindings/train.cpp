// The report of a training run, the same as the command-line tool's, and its classifiers.
#include "netcl/train.h"

#include "common.h"

namespace netcl::python {
namespace {

using train::Evaluation;
using train::Report;

void bind_records(nb::module_& m) {
  nb::class_<train::Point>(m, "Point", "A point of the curves.")
      .def(
          "__init__",
          [](train::Point* self, std::int64_t step, double loss, double accuracy) {
            new (self) train::Point{step, loss, accuracy};
          },
          "step"_a, "loss"_a, "accuracy"_a)
      .def_ro("step", &train::Point::step)
      .def_ro("loss", &train::Point::loss)
      .def_ro("accuracy", &train::Point::accuracy);
  nb::class_<train::EpochRecord>(m, "EpochRecord", "Loss and accuracy of an epoch.")
      .def(
          "__init__",
          [](train::EpochRecord* self, std::int64_t epoch, double loss, double accuracy,
             std::optional<std::pair<double, double>> test, double seconds) {
            new (self) train::EpochRecord{epoch,
                                          loss,
                                          accuracy,
                                          test.has_value(),
                                          test ? test->first : 0,
                                          test ? test->second : 0,
                                          seconds};
          },
          "epoch"_a, "loss"_a, "accuracy"_a, "test"_a = nb::none(), "seconds"_a = 0.0)
      .def_ro("epoch", &train::EpochRecord::epoch)
      .def_ro("loss", &train::EpochRecord::loss)
      .def_ro("accuracy", &train::EpochRecord::accuracy)
      .def_ro("tested", &train::EpochRecord::tested)
      .def_ro("test_loss", &train::EpochRecord::test_loss)
      .def_ro("test_accuracy", &train::EpochRecord::test_accuracy)
      .def_ro("seconds", &train::EpochRecord::seconds)
      .def("__repr__", [](const train::EpochRecord& r) {
        const auto number = [](double value) { return nb::str("{:.4g}").attr("format")(value); };
        nb::object text = nb::str("EpochRecord(epoch={}, loss={}, accuracy={}")
                              .attr("format")(r.epoch, number(r.loss), number(r.accuracy));
        if (r.tested)
          text = nb::str("{}, test_loss={}, test_accuracy={}")
                     .attr("format")(text, number(r.test_loss), number(r.test_accuracy));
        return nb::object(nb::str("{}, seconds={})").attr("format")(text, number(r.seconds)));
      });
  nb::class_<Evaluation>(m, "Evaluation", "Loss, accuracy and confusion on test data.")
      .def(
          "__init__",
          [](Evaluation* self, double loss, double accuracy, std::int64_t samples,
             const std::vector<std::string>& classes, const std::vector<std::int64_t>& confusion) {
            if (confusion.size() != classes.size() * classes.size())
              throw ShapeError("[Evaluation] the confusion must have classes * classes numbers: " +
                               std::to_string(confusion.size()));
            new (self) Evaluation{loss, accuracy, samples, classes, confusion};
          },
          "loss"_a, "accuracy"_a, "samples"_a, "classes"_a, "confusion"_a)
      .def_ro("loss", &Evaluation::loss)
      .def_ro("accuracy", &Evaluation::accuracy)
      .def_ro("samples", &Evaluation::samples)
      .def_ro("classes", &Evaluation::classes)
      .def_ro("confusion", &Evaluation::confusion);
}

std::string html(const std::string& title,
                 const std::vector<std::pair<std::string, std::string>>& settings,
                 const std::vector<train::Point>& curve,
                 const std::vector<train::EpochRecord>& history,
                 const std::optional<Evaluation>& evaluation, const nb::list& samples) {
  Report report{title, settings, curve, history, evaluation, {}, {}};
  for (nb::handle one : samples) {
    const nb::object image = one[0];
    const auto truth = nb::cast<std::size_t>(nb::object(one[1]));
    const auto answer = nb::cast<std::size_t>(nb::object(one[2]));
    const auto probability = nb::cast<double>(nb::object(one[3]));
    report.samples.push_back({to_host_array(image), truth, answer, probability});
  }
  return train::report_html(report);
}

}  // namespace

void bind_train(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("train", "Training.");
  bind_records(m);
  m.def("report_html", &html, "title"_a, "settings"_a, "curve"_a, "history"_a,
        "evaluation"_a = nb::none(), "samples"_a = nb::list(),
        "One HTML page; samples are (image, truth, answer, probability).");
  nb::class_<train::Classifier>(m, "Classifier",
                                "A trained network with all that its answers need.")
      .def_static(
          "load", [](const Path& path) { return train::Classifier::load(path.string()); }, "path"_a,
          unlocked(), "From a checkpoint of `netcl train`.")
      .def_prop_ro("model", &train::Classifier::model)
      .def_prop_ro("classes", &train::Classifier::classes)
      .def_prop_ro("image_shape", &train::Classifier::image)
      .def("logits", &train::Classifier::logits, "images"_a, unlocked(),
           "images (N, channels, height, width) in uint8")
      .def(
          "predict",
          [](const train::Classifier& classifier, nb::iterable images) {
            std::vector<HostArray> list;
            for (nb::handle image : images) list.push_back(to_host_array(image));
            Unlocked now;
            return train::predict(classifier, list);
          },
          "images"_a, "Probabilities of the classes, per image.")
      .def(
          "read_image",
          [](const train::Classifier& classifier, const Path& path, bool resize) {
            return to_numpy(classifier.read_image(path.string(), resize));
          },
          "path"_a, "resize"_a = false,
          "A PNG or JPEG as the model wants it; another size is an error unless it may be "
          "resized.");
  m.def(
      "evaluate_classifier",
      [](const train::Classifier& classifier, std::shared_ptr<data::Dataset> dataset,
         std::int64_t batch,
         int workers) { return train::evaluate(classifier, std::move(dataset), batch, workers); },
      "classifier"_a, "dataset"_a, "batch"_a = 256, "workers"_a = 2, unlocked(),
      "Loss, accuracy and confusion of a classifier on a dataset.");
}

}  // namespace netcl::python

// Datasets and the loader.
#include "netcl/data.h"

#include "common.h"

namespace netcl::python {
namespace {

data::Split split_of(const std::string& name) {
  if (name == "train") return data::Split::train;
  if (name == "test") return data::Split::test;
  throw ArgumentError("[data] the split must be train or test: " + name);
}

// A transform of the library, or a function image -> image of Python's.
struct Transform {
  data::Transform function;
};

data::Transform transform_of(nb::handle object) {
  if (nb::isinstance<Transform>(object)) return nb::cast<const Transform&>(object).function;
  const Callback callback(nb::borrow(object));
  return [callback](const HostArray& image, data::RandomStream& random) {
    const auto first = random.next(), second = random.next();
    nb::gil_scoped_acquire lock;
    return to_host_array(nb::module_::import_("netcl.data")
                             .attr("_with_rng")(nb::make_tuple(first, second), callback.function(),
                                                to_numpy(image)));
  };
}

void bind_datasets(nb::module_& m) {
  nb::class_<data::Dataset>(m, "Dataset", "Images and labels.")
      .def("__len__", &data::Dataset::size)
      .def("__getitem__",
           [](const data::Dataset& dataset, std::int64_t index) {
             if (index < 0) index += dataset.size();
             if (index < 0 || index >= dataset.size()) throw nb::index_error("no such sample");
             data::Sample sample;
             {
               Unlocked now;
               sample = dataset.sample(index);
             }
             return nb::make_tuple(to_numpy(sample.image), sample.label);
           })
      .def_prop_ro("classes", &data::Dataset::classes)
      .def("describe", &data::Dataset::describe, "index"_a, "A sample in words, for messages.");
  nb::class_<data::ArrayDataset, data::Dataset>(m, "ArrayDataset",
                                                "Images (N, ...) and labels (N) in memory.")
      .def(
          "__init__",
          [](data::ArrayDataset* self, nb::handle images, nb::handle labels,
             const std::vector<std::string>& classes) {
            new (self) data::ArrayDataset(to_host_array(images), to_host_array(labels), classes);
          },
          "images"_a, "labels"_a, "classes"_a = std::vector<std::string>{})
      .def_prop_ro("labels", &data::ArrayDataset::labels)
      .def_prop_ro("sample_shape", &data::ArrayDataset::sample_shape);
  nb::class_<data::ImageFolder, data::Dataset>(m, "ImageFolder", "One folder of images per class.")
      .def(
          "__init__",
          [](data::ImageFolder* self, const Path& directory, std::int64_t height,
             std::int64_t width, bool gray) {
            new (self) data::ImageFolder(directory.string(), {height, width, gray, {}});
          },
          "directory"_a, "height"_a = 0, "width"_a = 0, "gray"_a = false);
  m.def(
      "load_mnist",
      [](const Path& directory, const std::string& split) {
        return data::load_mnist(directory.string(), split_of(split));
      },
      "directory"_a, "split"_a = "train", unlocked(),
      "The files of MNIST and its relatives, plain or in gzip; split is \"train\" or \"test\".");
  m.def(
      "load_cifar",
      [](const Path& directory, const std::string& split) {
        return data::load_cifar(directory.string(), split_of(split));
      },
      "directory"_a, "split"_a = "train", unlocked(),
      "CIFAR-10 or CIFAR-100 in the binary version; split is \"train\" or \"test\".");
  m.def(
      "open_dataset",
      [](const Path& directory, const std::string& split) {
        return data::open_dataset(directory.string(), split_of(split));
      },
      "directory"_a, "split"_a = "train", unlocked(),
      "Whichever is there: MNIST's files, CIFAR's, or folders of images.");
}

void bind_transforms(nb::module_& m) {
  nb::class_<Transform>(m, "Transform", "A transform of samples, done by the loader's threads.")
      .def(
          "__call__",
          [](const Transform& transform, nb::handle image, std::uint64_t seed, std::uint64_t epoch,
             std::uint64_t sample, std::uint32_t number) {
            const auto array = to_host_array(image);
            data::RandomStream random(seed, epoch, sample, number);
            std::optional<HostArray> result;
            {
              Unlocked now;
              result = transform.function(array, random);
            }
            return to_numpy(*result);
          },
          "image"_a, "seed"_a = 0, "epoch"_a = 0, "sample"_a = 0, "number"_a = 0,
          "The transformed array; of a random one, as the `number`th transform of a loader does "
          "it.");
  m.def(
      "to_float", [] { return Transform{data::to_float()}; }, "uint8 to float32 in [0, 1].");
  m.def(
      "normalise",
      [](std::vector<float> mean, std::vector<float> deviation) {
        return Transform{data::normalise(std::move(mean), std::move(deviation))};
      },
      "mean"_a, "deviation"_a, "(x - mean) / deviation, per channel.");
  m.def(
      "random_horizontal_flip",
      [](double probability) { return Transform{data::random_horizontal_flip(probability)}; },
      "probability"_a = 0.5, "Left and right exchanged, with a probability.");
  m.def(
      "random_crop",
      [](std::int64_t height, std::int64_t width, std::int64_t padding) {
        return Transform{data::random_crop(height, width, padding)};
      },
      "height"_a, "width"_a, "padding"_a = 0,
      "A part anywhere in the image with `padding` zeros around it.");
}

}  // namespace

void bind_data(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("data", "Datasets and loaders.");
  bind_datasets(m);
  bind_transforms(m);
  m.def("shuffled", &data::shuffled, "count"_a, "seed"_a, "epoch"_a,
        "0 ... count - 1 in an order that seed and epoch decide.");
  nb::class_<data::Loader>(m, "_Loader")
      .def(
          "__init__",
          [](data::Loader* self, std::shared_ptr<data::Dataset> dataset, std::int64_t batch,
             bool shuffle, std::uint64_t seed, bool drop_last, int workers, int prefetch,
             const std::optional<QueueArg>& device, const nb::list& transforms) {
            data::LoaderOptions options{
                batch, shuffle, seed, drop_last, workers, prefetch, queue_or_active(device), {}};
            for (nb::handle one : transforms) options.transforms.push_back(transform_of(one));
            Unlocked now;
            new (self) data::Loader(std::move(dataset), std::move(options));
          },
          "dataset"_a, "batch"_a, "shuffle"_a, "seed"_a, "drop_last"_a, "workers"_a, "prefetch"_a,
          "device"_a.none(), "transforms"_a)
      .def_prop_ro("batches", &data::Loader::batches)
      .def("start_epoch", &data::Loader::start_epoch, "epoch"_a, unlocked())
      .def("next", [](data::Loader& loader) -> nb::object {
        std::optional<data::Batch> batch;
        {
          Unlocked now;
          batch = loader.next();
        }
        if (!batch) return nb::none();
        return nb::make_tuple(batch->images, batch->labels);
      });
}

}  // namespace netcl::python

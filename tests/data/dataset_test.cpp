// Datasets: what they give, and what they say about folders that are not as they should be.
#include <gtest/gtest.h>

#include <filesystem>

#include "netcl/data.h"
#include "support/errors.h"
#include "support/gzip.h"
#include "support/host_arrays.h"
#include "support/jpeg.h"
#include "support/temp_dir.h"

namespace netcl::data {
namespace {

namespace fs = std::filesystem;
using test::array_of;
using test::gzip;
using test::message_of;
using test::patterned;
using test::same_bits;
using test::TempDir;
using test::write_text;

#define EXPECT_SAYS(message, part) \
  EXPECT_NE((message).find(part), std::string::npos) << part << "\n  is not in " << (message)

// An IDX file of bytes.
std::string idx(const std::vector<std::uint8_t>& sizes, const std::string& values) {
  std::string file = {'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const auto size : sizes) file += std::string("\0\0\0", 3) + static_cast<char>(size);
  return file + values;
}

TEST(ArrayDataset, GivesItsSamples) {
  const auto images = patterned({3, 2, 4}, DType::uint8);
  const ArrayDataset set(images, array_of<std::int32_t>({3}, {2, 0, 1}));
  ASSERT_EQ(set.size(), 3);
  EXPECT_EQ(set.sample_shape(), (Shape{1, 2, 4}));
  EXPECT_EQ(set.classes(), (std::vector<std::string>{"0", "1", "2"}));
  const auto sample = set.sample(2);
  EXPECT_EQ(sample.label, 1);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(sample.image.at(i), images.at(16 + i));
  EXPECT_EQ(ArrayDataset(patterned({3, 5}, DType::float32), array_of<std::int8_t>({3}, {0, 0, 0}))
                .sample_shape(),
            (Shape{5}));
  EXPECT_THROW(set.sample(3), ArgumentError);
  EXPECT_THROW(set.sample(-1), ArgumentError);
}

TEST(ArrayDataset, RefusesWhatDoesNotFit) {
  const auto images = patterned({2, 3, 3}, DType::uint8);
  const auto make = [&](const HostArray& labels, std::vector<std::string> names = {}) {
    return [=] { ArrayDataset(images, labels, names); };
  };
  EXPECT_THROW(make(array_of<std::int32_t>({3}, {0, 0, 0}))(), ShapeError);
  EXPECT_THROW(make(array_of<std::int32_t>({2, 1}, {0, 0}))(), ShapeError);
  EXPECT_THROW(make(array_of<float>({2}, {0, 0}))(), DtypeError);
  EXPECT_THROW(make(HostArray())(), ArgumentError);
  EXPECT_SAYS(message_of<ArgumentError>(make(array_of<std::int64_t>({2}, {0, -1}))),
              "sample 1 has -1");
  EXPECT_SAYS(message_of<ArgumentError>(make(array_of<std::uint8_t>({2}, {2, 0}), {"a", "b"})),
              "in [0, 2): sample 0 has 2");
  EXPECT_THROW(make(array_of<std::int64_t>({2}, {0, INT64_MAX}))(), ArgumentError);
  EXPECT_THROW(ArrayDataset(array_of<float>({}, {1}), array_of<std::int64_t>({1}, {0})),
               ShapeError);
}

TEST(Mnist, OfTheRepository) {
  const auto train = load_mnist(NETCL_DATA_DIR "/mnist"),
             test = load_mnist(NETCL_DATA_DIR "/mnist", Split::test);
  EXPECT_EQ(train->size(), 60000);
  EXPECT_EQ(test->size(), 10000);
  for (const auto& set : {train, test}) {
    EXPECT_EQ(set->classes().size(), 10u);
    EXPECT_EQ(set->sample_shape(), (Shape{1, 28, 28}));
  }
  const std::vector<std::int64_t> first(train->labels().begin(), train->labels().begin() + 5);
  EXPECT_EQ(first, (std::vector<std::int64_t>{5, 0, 4, 1, 9}));
  EXPECT_EQ(test->sample(0).label, 7);
  EXPECT_NE(dynamic_cast<const ArrayDataset*>(open_dataset(NETCL_DATA_DIR "/mnist").get()),
            nullptr);
}

TEST(Mnist, FindsPlainAndPackedFiles) {
  const TempDir dir;
  const auto images = idx({2, 2, 2}, "abcdefgh"), labels = idx({2}, "\1\3");
  write_text(dir / "train-images-idx3-ubyte", images);
  EXPECT_SAYS(message_of<FileError>([&] { load_mnist(dir.path().string()); }),
              "missing, plain or as .gz: train-labels-idx1-ubyte");
  EXPECT_SAYS(message_of<FileError>([&] { load_mnist(dir.path().string(), Split::test); }),
              "t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte");
  write_text(dir / "train-labels-idx1-ubyte.gz", gzip(labels));
  EXPECT_EQ(load_mnist(dir.path().string())->sample(1).label, 3);
  EXPECT_EQ(open_dataset(dir.path().string())->sample(1).image.at(0), 'e');
  write_text(dir / "t10k-images.idx3-ubyte", images);
  write_text(dir / "t10k-labels.idx1-ubyte", labels);
  EXPECT_EQ(open_dataset(dir.path().string(), Split::test)->size(), 2);

  write_text(dir / "train-labels-idx1-ubyte", idx({3}, "\1\3\3"));
  EXPECT_SAYS(message_of<FormatError>([&] { load_mnist(dir.path().string()); }),
              "2 labels are needed");
  write_text(dir / "train-labels-idx1-ubyte", idx({2, 1}, "\1\3"));
  EXPECT_SAYS(message_of<FormatError>([&] { load_mnist(dir.path().string()); }), "(2, 1)");
  write_text(dir / "train-labels-idx1-ubyte", "");
  EXPECT_SAYS(message_of<FormatError>([&] { load_mnist(dir.path().string()); }),
              "train-labels-idx1-ubyte");
  write_text(dir / "train-labels-idx1-ubyte", labels);
  write_text(dir / "train-images-idx3-ubyte", idx({2, 4}, "abcdefgh"));
  EXPECT_SAYS(message_of<FormatError>([&] { load_mnist(dir.path().string()); }), "(2, 4)");
  EXPECT_SAYS(message_of<FileError>([&] { load_mnist(dir / "absent"); }), "must exist");
}

std::string cifar_records(std::size_t label_bytes, std::vector<char> labels) {
  std::string text;
  for (const auto label : labels)
    text += std::string(label_bytes - 1, '\0') + label + std::string(3072, label);
  return text;
}

TEST(Cifar, BothKinds) {
  const TempDir dir;
  fs::create_directory(dir / "ten");
  fs::create_directory(dir / "hundred");
  for (int i = 1; i <= 4; ++i)
    write_text(dir / ("ten/data_batch_" + std::to_string(i) + ".bin"),
               cifar_records(1, {static_cast<char>(i), 9}));
  write_text(dir / "ten/test_batch.bin", cifar_records(1, {4}));
  EXPECT_SAYS(message_of<FileError>([&] { load_cifar(dir / "ten"); }), "missing: data_batch_5.bin");
  write_text(dir / "ten/data_batch_5.bin", cifar_records(1, {5}));
  const auto ten = load_cifar(dir / "ten");
  EXPECT_EQ(ten->labels(), (std::vector<std::int64_t>{1, 9, 2, 9, 3, 9, 4, 9, 5}));
  EXPECT_EQ(ten->sample(8).image.at(3071), 5);
  EXPECT_EQ(ten->classes().size(), 10u);
  write_text(dir / "ten/batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  EXPECT_EQ(open_dataset(dir / "ten", Split::test)->classes()[4], "e");
  write_text(dir / "ten/batches.meta.txt", "a\nb\n");
  EXPECT_SAYS(message_of<FormatError>([&] { load_cifar(dir / "ten"); }), "10 names are needed");

  write_text(dir / "hundred/train.bin", cifar_records(2, {99, 0}));
  const auto hundred = open_dataset(dir / "hundred");
  EXPECT_EQ(hundred->sample(0).label, 99);
  EXPECT_EQ(hundred->classes().size(), 100u);
  EXPECT_SAYS(message_of<FileError>([&] { load_cifar(dir / "hundred", Split::test); }), "test.bin");
}

TEST(ImageFolder, ClassesInOrderAndDecodedOnDemand) {
  const TempDir dir;
  for (const auto* folder : {"train/dog", "train/cat/more", "train/.hidden", "val/cat"})
    fs::create_directories(dir / folder);
  io::save_png(dir / "train/dog/b.png", patterned({4, 6, 3}, DType::uint8));
  write_text(dir / "train/dog/a.JPG", test::jpeg(6, 4, std::vector<unsigned char>(72, 200)));
  io::save_png(dir / "train/cat/more/z.png", patterned({4, 6}, DType::uint8));
  write_text(dir / "train/cat/notes.txt", "not an image");
  write_text(dir / "train/cat/.x.png", "hidden");
  write_text(dir / "train/loose.png", "of no class");
  io::save_png(dir / "val/cat/1.png", patterned({1, 1}, DType::uint8));

  const ImageFolder set(dir / "train");
  EXPECT_EQ(set.classes(), (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(set.size(), 3);
  const std::int64_t labels[] = {0, 1, 1};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(set.sample(i).label, labels[i]);
    EXPECT_EQ(set.sample(i).image.shape(), (Shape{3, 4, 6}));
  }
  EXPECT_SAYS(set.describe(1), "train/dog/a.JPG");
  // Planes instead of interleaved values.
  const auto stored = io::load_image(dir / "train/dog/b.png");
  EXPECT_EQ(set.sample(2).image.at(24 + 7), stored.at(7 * 3 + 1));

  const ImageFolder small(dir / "train", {.height = 2, .width = 3, .gray = true});
  EXPECT_EQ(small.sample(1).image.shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(small.sample(1).image.at(0), 200);
  EXPECT_EQ(open_dataset(dir.path().string(), Split::test)->size(), 1);
  EXPECT_THROW(set.sample(3), ArgumentError);
  EXPECT_THROW(ImageFolder(dir / "train", {.height = 2}), ArgumentError);
}

TEST(ImageFolder, SaysWhatIsWrong) {
  const TempDir dir;
  EXPECT_SAYS(message_of<FileError>([&] { ImageFolder(dir / "absent"); }), "absent");
  EXPECT_SAYS(message_of<FormatError>([&] { ImageFolder(dir.path().string()); }),
              "a folder per class");
  fs::create_directories(dir / "a");
  fs::create_directories(dir / "empty");
  write_text(dir / "a/x.png", "no PNG");
  EXPECT_SAYS(message_of<FormatError>([&] { ImageFolder(dir.path().string()); }), dir / "empty");
  fs::remove(dir / "empty");
  const ImageFolder set(dir.path().string());
  EXPECT_SAYS(message_of<FormatError>([&] { set.sample(0); }), dir / "a/x.png");
  fs::remove(dir / "a/x.png");
  EXPECT_SAYS(message_of<FileError>([&] { set.sample(0); }), dir / "a/x.png");
}

TEST(OpenDataset, SaysWhatItLookedFor) {
  const TempDir dir;
  const auto message =
      message_of<FileError>([&] { open_dataset(dir.path().string(), Split::test); });
  for (const auto* part : {"t10k-images-idx3-ubyte", "test_batch.bin", "test.bin", "val"})
    EXPECT_SAYS(message, part);
  EXPECT_SAYS(message_of<FileError>([&] { open_dataset(dir / "absent"); }), "must exist");
}

TEST(ResizeImage, KeepsFlatImagesAndMeans) {
  HostArray flat({2, 7, 5}, DType::uint8);
  for (auto& value : flat.values<std::uint8_t>()) value = 93;
  for (const auto& [height, width] : {std::pair(3, 2), std::pair(14, 20), std::pair(7, 1)}) {
    const auto resized = resize_image(flat, height, width);
    ASSERT_EQ(resized.shape(), (Shape{2, height, width}));
    for (const auto value : resized.values<std::uint8_t>()) EXPECT_EQ(value, 93);
  }
  // To one pixel: the tent over all pixels. To twice the size: the points between.
  const auto ramp = array_of<std::uint8_t>({1, 1, 4}, {0, 40, 80, 120});
  EXPECT_TRUE(same_bits(resize_image(ramp, 1, 8),
                        array_of<std::uint8_t>({1, 1, 8}, {0, 10, 30, 50, 70, 90, 110, 120})));
  EXPECT_EQ(resize_image(ramp, 1, 1).at(0), 60);
  EXPECT_THROW(resize_image(ramp, 0, 1), ShapeError);
  EXPECT_THROW(resize_image(patterned({2, 2}, DType::uint8), 1, 1), ShapeError);
  EXPECT_THROW(resize_image(patterned({1, 2, 2}, DType::float32), 1, 1), DtypeError);
}

}  // namespace
}  // namespace netcl::data

// safetensors files: round trips, a file written byte by byte, and everything that must be refused.
#include <gtest/gtest.h>

#include "base/file.h"
#include "netcl/io.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/host_arrays.h"
#include "support/temp_dir.h"

namespace netcl::io {
namespace {

using test::array_of;
using test::message_of;
using test::patterned;
using test::read_text;
using test::same_bits;
using test::TempDir;
using test::write_text;

std::string length_of(std::uint64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string file_of(const std::string& header, const std::string& data = "") {
  return length_of(header.size()) + header + data;
}

ArrayMap many_arrays() {
  ArrayMap arrays;
  unsigned seed = 0;
  for (const auto dtype : kAllDTypes)
    for (const auto& shape : test::kManyShapes)
      arrays[std::string(name_of(dtype)) + "/" + shape.to_string()] =
          patterned(shape, dtype, ++seed);
  return arrays;
}

TEST(Safetensors, KeepsEveryDtypeAndShape) {
  const TempDir dir;
  const auto path = dir / "all.safetensors";
  const auto arrays = many_arrays();
  save_safetensors(path, arrays, {{"format", "pt"}, {"note", "\xc3\xa4 \"quoted\"\n"}});
  const SafetensorsFile file(path);
  ASSERT_EQ(file.names().size(), arrays.size());
  for (const auto& [name, array] : arrays) {
    EXPECT_TRUE(file.contains(name));
    EXPECT_EQ(file.shape(name), array.shape()) << name;
    EXPECT_EQ(file.dtype(name), array.dtype()) << name;
    EXPECT_TRUE(same_bits(file.read(name), array)) << name;
    EXPECT_EQ(file.entry(name).offset % size_of(array.dtype()), 0u) << name;  // aligned
  }
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.metadata().at("note"), "\xc3\xa4 \"quoted\"\n");
  EXPECT_EQ(file.path(), path);
}

TEST(Safetensors, GoesThroughEveryDevice) {
  const TempDir dir;
  const auto arrays = many_arrays();
  test::on_every_device([&](const Queue& queue) {
    TensorMap tensors;
    for (const auto& [name, array] : arrays) tensors[name] = Tensor::from_host(queue, array);
    tensors["view"] = Tensor::arange(queue, 0, 12, 1, DType::int32).reshape({3, 4}).transpose();
    save_safetensors(dir / "f", tensors);
    const auto loaded = load_safetensors(dir / "f", queue);
    ASSERT_EQ(loaded.size(), tensors.size());
    for (const auto& [name, array] : arrays)
      EXPECT_TRUE(same_bits(loaded.at(name).to_host(), array)) << name;
    EXPECT_EQ(loaded.at("view").shape(), (Shape{4, 3}));
    EXPECT_EQ(loaded.at("view").to_vector<std::int32_t>(),
              (std::vector<std::int32_t>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  });
  EXPECT_EQ(load_safetensors(dir / "f").size(), arrays.size() + 1);
}

TEST(Safetensors, WritesTheseBytes) {
  const TempDir dir;
  save_safetensors(dir / "f", ArrayMap{{"b", array_of<std::uint8_t>({3}, {1, 2, 3})},
                                       {"a", array_of<std::int32_t>({1, 1}, {258})},
                                       {"c", array_of<float>({}, {1.0f})}});
  std::string header = R"({"a":{"data_offsets":[0,4],"dtype":"I32","shape":[1,1]},)"
                       R"("c":{"data_offsets":[4,8],"dtype":"F32","shape":[]},)"
                       R"("b":{"data_offsets":[8,11],"dtype":"U8","shape":[3]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::string data("\x02\x01\0\0\0\0\x80\x3f\1\2\3", 11);
  EXPECT_EQ(read_text(dir / "f"), file_of(header, data));
  save_safetensors(dir / "empty", ArrayMap{});
  EXPECT_EQ(read_text(dir / "empty"), file_of("{}      "));
  EXPECT_TRUE(SafetensorsFile(dir / "empty").names().empty());
}

TEST(Safetensors, ReadsFilesOfOthers) {
  const TempDir dir;
  // Fields in another order, spaces, data in another order than the header, padding.
  write_text(dir / "f", file_of(R"({ "__metadata__": {"k": "v"}, "y": {"shape": [2], "data_offsets":
      [1, 5], "dtype": "F16"}, "x": {"dtype": "BOOL", "shape": [1, 1], "data_offsets": [0, 1]},
      "none": {"dtype": "F64", "shape": [0, 9], "data_offsets": [5, 5]}}    )",
                                std::string("\2\0\x3c\0\x40", 5)));
  const SafetensorsFile file(dir / "f");
  EXPECT_EQ(file.names(), (std::vector<std::string>{"none", "x", "y"}));
  EXPECT_EQ(file.read("y").at(0), 1.0);
  EXPECT_EQ(file.read("y").at(1), 2.0);
  // A true that is not 1 is made one.
  EXPECT_EQ(*static_cast<const unsigned char*>(file.read("x").data()), 1);
  EXPECT_EQ(file.read("none").numel(), 0);
  EXPECT_EQ(file.metadata(), (Metadata{{"k", "v"}}));
  const auto message = message_of<ArgumentError>([&] { file.read("absent"); });
  EXPECT_NE(message.find("\"absent\""), std::string::npos) << message;
}

struct Refused {
  const char* header;
  const char* data;  // x marks bytes
  const char* part;  // of the message
};

const Refused kRefused[] = {
    {R"(["a"])", "", "must begin with '{'"},
    {R"( {})", "", "must begin with '{'"},
    {R"({)", "", "must be JSON"},
    {R"({})", "x", "cover the data of 1 bytes: 0"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})", "xxxx", "must be JSON"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}})", "xxxx", "must be JSON"},
    {R"({"a":1})", "", "the number 1 for \"a\""},
    {R"({"a":null})", "", "null"},
    {R"({"a":{}})", "", "dtype is missing"},
    {R"({"a":{"dtype":"F32","shape":[]}})", "", "data_offsets is missing"},
    {R"({"a":{"dtype":"F32","data_offsets":[0,0]}})", "", "shape is missing"},
    {R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", "xxxx", "\"F31\""},
    {R"({"a":{"dtype":"U16","shape":[2],"data_offsets":[0,4]}})", "xxxx", "\"U16\""},
    {R"({"a":{"dtype":["F32"],"shape":[1],"data_offsets":[0,4]}})", "xxxx", "a list"},
    {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "xxxx", "the number -1"},
    {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", "xxxx", "the number 1.0"},
    {R"({"a":{"dtype":"F32","shape":[1e3],"data_offsets":[0,4]}})", "xxxx", "the number 1e3"},
    {R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", "xxxx", "a list"},
    {R"({"a":{"dtype":"F32","shape":"1","data_offsets":[0,4]}})", "xxxx", "the text"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})", "xxxx", "\"more\""},
    {R"({"a":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}})", "xxxx", "once"},
    {R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "xxxx", "once"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
     R"("a":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}})",
     "xxxx", "a name may appear once: \"a\""},
    {R"({"__metadata__":{},"__metadata__":{}})", "", "once"},
    {R"({"__metadata__":{"a":"b","a":"b"}})", "", "once"},
    {R"({"__metadata__":{"a":1}})", "", "the number 1"},
    {R"({"__metadata__":{"a":{}}})", "", "an object"},
    {R"({"__metadata__":"a"})", "", "the text"},
    {R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]}})", "xxxx",
     "63 bits: 9223372036854775808"},
    {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})", "xxxx",
     "63 bits: shape [4611686018427387904, 4]"},
    {R"({"a":{"dtype":"F32","shape":[0,4611686018427387904,4],"data_offsets":[0,0]}})", "",
     "63 bits"},
    {R"({"a":{"dtype":"F32","shape":[99999999999999999999999],"data_offsets":[0,4]}})", "xxxx",
     "the number"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "xxxx",
     "shape [2] of F32 needs 8 bytes: data_offsets [0, 4] have 4"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "xxxx", "[4, 0]"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", "xxxx", "a begin and an end"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,2,4]}})", "xxxx", "a begin and an end"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", "xxxx", "the number -4"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "xxx", "within the 3 bytes"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "xxxxx", "cover the data of 5"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})", "xxxxx", "at 0: it begins at 1"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
     R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
     "xxxxxx", "tensor \"b\": the data must begin where the one before ends, at 4"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
     R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
     "xxxx", "at 4: it begins at 0"},
    {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[9223372036854775807,9223372036854775807]}})",
     "", "within the 0 bytes"},
    {"{\"\xff\":1}", "", "must be JSON"},
};

TEST(Safetensors, RefusesWhatIsWrongAndSaysWhat) {
  const TempDir dir;
  for (const auto& [header, data, part] : kRefused) {
    write_text(dir / "f", file_of(header, data));
    const auto message = message_of<FormatError>([&] { SafetensorsFile(dir / "f"); });
    EXPECT_NE(message.find(part), std::string::npos) << header << "\n  gives " << message;
    EXPECT_NE(message.find(dir / "f"), std::string::npos) << message;
  }
}

TEST(Safetensors, RefusesLengthsThatCannotBe) {
  const TempDir dir;
  const std::pair<std::string, const char*> cases[] = {
      {"", "at least 8 bytes"},
      {"1234567", "at least 8 bytes"},
      {length_of(1), "fit the file of 8 bytes: 1"},
      {length_of(UINT64_MAX) + "{}", "18446744073709551615"},
      {length_of(std::uint64_t{1} << 63) + "{}", "9223372036854775808"},
      {length_of(0), "must begin with"},
  };
  for (const auto& [text, part] : cases) {
    write_text(dir / "f", text);
    const auto message = message_of<FormatError>([&] { SafetensorsFile(dir / "f"); });
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  // A file that is large enough for it: without content on the disk, and not read.
  write_text(dir / "f", length_of(100'000'001) + "{}");
  std::filesystem::resize_file(dir / "f", 200'000'000);
  const auto message = message_of<FormatError>([&] { SafetensorsFile(dir / "f"); });
  EXPECT_NE(message.find("100000000 bytes: 100000001"), std::string::npos) << message;
  EXPECT_THROW(SafetensorsFile(dir / "absent"), FileError);
  EXPECT_THROW(SafetensorsFile(dir.path().string()), FileError);
}

TEST(Safetensors, DeepAndLongHeadersCostNothing) {
  const TempDir dir;
  for (const auto& header :
       {"{\"a\":" + std::string(1'000'000, '['),
        "{\"a\":{\"shape\":[" + std::string(1'000'000, '1'), std::string(1'000'000, '{')}) {
    write_text(dir / "f", file_of(header));
    EXPECT_THROW(SafetensorsFile(dir / "f"), FormatError);
  }
  std::string many = R"({"a":{"dtype":"U8","shape":[)";
  for (int i = 0; i < 65; ++i) many += "1,";
  write_text(dir / "f", file_of(many + R"(1],"data_offsets":[0,1]}})", "x"));
  EXPECT_THROW(SafetensorsFile(dir / "f"), FormatError);
}

TEST(Safetensors, AFileThatShrinksMeanwhileIsAnError) {
  const TempDir dir;
  save_safetensors(dir / "f", ArrayMap{{"a", patterned({1000}, DType::float32)}});
  const SafetensorsFile file(dir / "f");
  std::filesystem::resize_file(dir / "f", 500);
  EXPECT_THROW(file.read("a"), FormatError);
}

TEST(Safetensors, RefusesToWriteWhatItCouldNotRead) {
  const TempDir dir;
  const auto one = patterned({1}, DType::float32);
  EXPECT_THROW(save_safetensors(dir / "f", ArrayMap{{"\xff", one}}), ArgumentError);
  EXPECT_THROW(save_safetensors(dir / "f", ArrayMap{{"__metadata__", one}}), ArgumentError);
  EXPECT_THROW(save_safetensors(dir / "f", ArrayMap{{"a", one}}, {{"k", "\xff"}}), ArgumentError);
  EXPECT_THROW(save_safetensors(dir / "f", ArrayMap{{"a", HostArray()}}), ArgumentError);
  EXPECT_THROW(save_safetensors(dir / "f", TensorMap{{"a", Tensor()}}), ArgumentError);
  EXPECT_THROW(save_safetensors(dir / "none/f", ArrayMap{{"a", one}}), FileError);
  EXPECT_EQ(test::count_files(dir.path()), 0u);
}

}  // namespace
}  // namespace netcl::io

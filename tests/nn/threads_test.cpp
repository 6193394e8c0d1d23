// Many threads train on one device at the same time, each a model of its own: every one gets the
// bits that it gets alone.
#include <gtest/gtest.h>

#include <thread>

#include "netcl/netcl.h"
#include "support/devices.h"

namespace netcl {
namespace {

constexpr int kThreads = 16, kSteps = 4;

struct Student {
  nn::ModulePtr model;
  std::vector<double> losses;
  std::string error;
};

nn::ModulePtr make_model(const Queue& queue) {
  auto model = nn::make<nn::Sequential>();
  model->append(nn::make<nn::Linear>(12, 20));
  model->append(nn::make<nn::Activation>("gelu"));
  model->append(nn::make<nn::Linear>(20, 3));
  model->to(queue);
  return model;
}

void learn(Student& student, const Queue& queue, int number) {
  optim::Adam adam(student.model->parameters(), {.lr = 1e-2});
  for (int step = 0; step < kSteps; ++step) {
    const auto rows = 3 + (number + step) % 5;  // shapes change too
    const auto x =
        Tensor::random(queue, {rows, 12}, static_cast<std::uint64_t>(step * 100 + number));
    std::vector<std::int64_t> labels(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int64_t>(i % 3);
    Tape tape;
    const auto loss = ops::cross_entropy((*student.model)(x), Tensor::from_host(queue, labels));
    tape.backward(loss);
    adam.step();
    adam.zero_grad();
    student.losses.push_back(loss.item());
  }
}

std::vector<Student> make_students(const Queue& queue) {
  nn::manual_seed(5);
  std::vector<Student> students(kThreads);
  for (auto& student : students) student.model = make_model(queue);
  return students;
}

TEST(Threads, sixteen_train_on_one_device) {
  test::on_every_device([](const Queue& queue) {
    auto alone = make_students(queue), together = make_students(queue);
    for (int i = 0; i < kThreads; ++i) learn(alone[static_cast<std::size_t>(i)], queue, i);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        auto& student = together[static_cast<std::size_t>(i)];
        try {
          learn(student, queue, i);
        } catch (const std::exception& error) {
          student.error = error.what();
        }
      });
    for (auto& thread : threads) thread.join();
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(together[i].error, "");
      EXPECT_EQ(together[i].losses, alone[i].losses) << "thread " << i;
    }
  });
}

}  // namespace
}  // namespace netcl

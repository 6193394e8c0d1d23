// The training loop. Between two steps the run is always in a state that can be saved; a step
// itself holds Ctrl+C back.
#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/interrupt.h"
#include "netcl/autograd.h"
#include "netcl/optim.h"
#include "netcl/runtime.h"
#include "train/checkpoint.h"
#include "train/classes.h"

namespace netcl::train {
namespace {

using Clock = std::chrono::steady_clock;

// Steps that are summed up on the device before the host reads the sums. Fixed, so that the curve
// does not depend on the speed.
constexpr std::int64_t kWindow = 20;
constexpr double kReportSeconds = 0.2;
// The part of a run, one in so many steps, in which the rate grows to its full height.
constexpr std::int64_t kWarmupShare = 10;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr std::int64_t kMaxEpochs = 1'000'000'000;

struct Settings {
  std::string model = "cnn";
  std::int64_t epochs = 1, batch = 64;
  double lr = 4e-3;
  std::string schedule = kCosine;
  std::uint64_t seed = 0;
};

Settings settings_of(const Options& options) {
  Settings s;
  s.model = options.model.value_or(s.model);
  s.epochs = options.epochs.value_or(s.epochs);
  s.batch = options.batch.value_or(s.batch);
  s.lr = options.lr.value_or(s.lr);
  s.schedule = options.schedule.value_or(s.schedule);
  s.seed = options.seed.value_or(s.seed);
  return s;
}

template <class T>
void require_same(const char* what, const std::optional<T>& given, const T& stored) {
  check<ArgumentError>(!given || *given == stored,
                       "[train] a run goes on with the {} of its checkpoint, {}: {}", what, stored,
                       given ? *given : stored);
}

// Takes the checkpoint's settings; only epochs, lr and schedule may be others.
Settings settings_of(const Options& options, const RunState& run) {
  require_same("batch", options.batch, run.loader.batch);
  require_same("seed", options.seed, run.loader.seed);
  return {run.model_name,
          options.epochs.value_or(run.epochs),
          run.loader.batch,
          options.lr.value_or(run.lr),
          options.schedule.value_or(run.schedule),
          run.loader.seed};
}

void check_settings(const Settings& s) {
  check<ArgumentError>(s.epochs > 0 && s.epochs <= kMaxEpochs,
                       "[train] the number of epochs must be in [1, {}]: {}", kMaxEpochs, s.epochs);
  check<ArgumentError>(s.batch > 0 && s.batch <= (1 << 20),
                       "[train] the batch size must be in [1, {}]: {}", 1 << 20, s.batch);
  check<ArgumentError>(s.lr > 0 && s.lr < 1e6, "[train] lr must be positive: {}", s.lr);
  check<ArgumentError>(s.schedule == kCosine || s.schedule == kConstant,
                       "[train] the schedule must be {} or {}: {}", kCosine, kConstant, s.schedule);
}

}  // namespace

struct Trainer::Impl {
  explicit Impl(const Options& given)
      : options(given), device(manager().default_device(given.device)) {
    const ActiveDevice active(device);
    std::optional<CheckpointFile> file;
    if (!options.resume.empty()) file.emplace(options.resume);
    if (file && options.data.empty()) options.data = file->content().run.data;
    if (file && options.height == 0 && options.width == 0) {
      options.height = file->content().run.height;
      options.width = file->content().run.width;
    }
    settings = file ? settings_of(options, file->content().run) : settings_of(options);
    check_settings(settings);
    open_data();
    file ? restore(*file) : begin();
  }

  void open_data() {
    check<ArgumentError>(!options.data.empty(), "[train] a directory with data is needed");
    data::ImageFolder::Options folder;
    folder.height = options.height;
    folder.width = options.width;
    train_set = data::open_dataset(options.data, data::Split::train, folder);
    check<FormatError>(train_set->size() > 0, "[train] {}: there are no samples", options.data);
    try {
      test_set = data::open_dataset(options.data, data::Split::test, folder);
    } catch (const FileError& error) {
      test_problem = error.what();
    }
    const auto first = train_set->sample(0).image;
    check<FormatError>(
        first.dtype() == DType::uint8 && first.shape().rank() == 3 && first.numel() > 0,
        "[train] {}: images must be uint8 (channels, height, width): {} {}", options.data,
        name_of(first.dtype()), first.shape().to_string());
    image = first.shape();
    if (test_set) {
      check_classes("train", train_set->classes(), test_set->classes());
      const auto other = test_set->size() > 0 ? test_set->sample(0).image.shape() : image;
      check<FormatError>(other == image,
                         "[train] {}: test images must have the shape of training images, {}: {}",
                         options.data, image.to_string(), other.to_string());
      if (test_set->size() == 0) test_problem = "there are no test samples", test_set.reset();
    }
  }

  void make_loader() {
    loader =
        std::make_unique<data::Loader>(train_set, data::LoaderOptions{.batch = settings.batch,
                                                                      .shuffle = true,
                                                                      .seed = settings.seed,
                                                                      .workers = options.workers,
                                                                      .queue = device.queue});
  }

  void begin() {
    nn::manual_seed(settings.seed);
    const auto classes = static_cast<std::int64_t>(train_set->classes().size());
    auto model = make_model(settings.model, image[0], image[1], image[2], classes);
    random = nn::random_state();
    classifier.emplace(model, train_set->classes(), image, measure_normalisation(*train_set));
    make_optimizer();
    make_loader();
    make_schedule();
    window_loss = Tensor::from_shape(Shape{});
    window_right = Tensor::from_shape(Shape{}, DType::int64);
  }

  void make_optimizer() {
    check<ArgumentError>(!classifier->model()->parameters().empty(),
                         "[train] the model must have parameters");
    optimizer = std::make_shared<optim::Adam>(classifier->model()->parameters(),
                                              optim::AdamOptions{.lr = settings.lr});
  }

  // A function of the step alone, so that a run which goes on needs no more than its number.
  void make_schedule() {
    if (settings.schedule != kCosine) return;
    const auto total = settings.epochs * loader->batches();
    schedule = std::make_unique<optim::CosineSchedule>(optimizer, total, total / kWarmupShare);
    schedule->load_state({static_cast<double>(optimizer->steps()), settings.lr});
  }

  void restore(const CheckpointFile& file) {
    const auto& content = file.content();
    const auto& run = content.run;
    check<ArgumentError>(content.classes == train_set->classes(),
                         "[train] the checkpoint must be of the data's classes ({} of them): {}",
                         train_set->classes().size(), content.classes.size());
    check<ArgumentError>(content.image == image, "[train] the checkpoint must be of images {}: {}",
                         image.to_string(), content.image.to_string());
    classifier.emplace(file.make_classifier());
    if (options.model) require_model(*options.model, content);
    make_optimizer();
    auto state = file.optimizer_state(optimizer->parameters());
    state.lr = settings.lr;
    optimizer->load_state(state);
    make_loader();
    loader->restore(run.loader);
    make_schedule();
    random = run.random;
    epoch = run.epoch;
    window_seen = run.window_seen;
    window_loss = file.window(kWindowLoss, DType::float32);
    window_right = file.window(kWindowRight, DType::int64);
    history = run.history;
    curve = run.curve;
  }

  // A model of this name must be the checkpoint's.
  void require_model(const std::string& name, const Checkpoint& content) const {
    const auto wanted = make_model(name, image[0], image[1], image[2],
                                   static_cast<std::int64_t>(content.classes.size()));
    check<ArgumentError>(nn::to_json(*wanted) == nn::to_json(*classifier->model()),
                         "[train] the checkpoint is of another model than {}: {}\n{}", name,
                         content.run.model_name, classifier->model()->to_string());
  }

  // ---- the loop

  bool finished() const { return loader->state().epoch >= settings.epochs; }

  void run(const Callbacks& callbacks, std::int64_t steps) {
    check<ArgumentError>(consistent,
                         "[train] the first step was broken off: begin again or resume");
    const ActiveDevice active(device);
    nn::set_random_state(random);
    loader->restore(loader->state());  // forgets an interrupt that a worker met
    classifier->model()->train();
    last_step = last_report = Clock::now();
    while (!finished()) {
      check_interrupt();
      if (loader->state().position == loader->batches()) {
        finish_epoch(callbacks);
        continue;
      }
      if (steps-- <= 0) return;
      step(*loader->next());
      progress(callbacks);
    }
  }

  void step(const data::Batch& batch) {
    // The first step compiles and measures kernels, which may take long; there is little to lose.
    std::optional<interrupt::Hold> hold;
    if (warm) hold.emplace();
    consistent = false;
    Tensor logits, loss;
    {
      Tape tape;
      logits = classifier->logits(batch.images);
      loss = ops::cross_entropy(logits, batch.labels);
      tape.backward(loss, {}, {.retain = false});
    }
    optimizer->step();
    optimizer->zero_grad();
    if (schedule) schedule->step();
    count(logits.detach(), loss.detach(), batch.labels);
    random = nn::random_state();
    consistent = true;
    const auto took = seconds_since(last_step);  // since the end of the step before
    last_step = Clock::now();
    epoch.seconds += took;
    if (warm) {
      busy_seconds += took;
      busy_images += batch.labels.numel();
    }
    warm = true;
  }

  // Sums stay on the device: reading them would wait for the step.
  void count(const Tensor& logits, const Tensor& loss, const Tensor& labels) {
    const no_grad off;
    const auto samples = labels.numel();
    ops::add_(window_loss, loss * static_cast<double>(samples));
    ops::add_(window_right, ops::sum(ops::eq(ops::argmax(logits, 1), labels)));
    window_seen += samples;
  }

  void progress(const Callbacks& callbacks) {
    const auto position = loader->state().position;
    const bool full = position % kWindow == 0 || position == loader->batches();
    if (!full && (!callbacks.progress || seconds_since(last_report) < kReportSeconds)) return;
    const auto now = read_progress(full);
    last_report = Clock::now();
    if (callbacks.progress) callbacks.progress(now);
  }

  Progress read_progress(bool full) {
    const interrupt::Hold hold;
    const double loss = window_loss.item(), right = window_right.item();
    const auto samples = static_cast<double>(window_seen);
    const auto state = loader->state();
    Progress now;
    now.epoch = state.epoch + 1;
    now.epochs = settings.epochs;
    now.batch = state.position;
    now.batches = loader->batches();
    now.step = optimizer->steps();
    now.loss = loss / samples;
    now.accuracy = right / samples;
    if (busy_seconds > 0) {
      const auto left = (settings.epochs - state.epoch) * state.samples -
                        std::min(state.position * settings.batch, state.samples);
      now.images_per_second = static_cast<double>(busy_images) / busy_seconds;
      now.seconds_left = static_cast<double>(left) / now.images_per_second;
    }
    if (full) {
      curve.push_back({now.step, now.loss, now.accuracy});
      close_window(loss, static_cast<std::int64_t>(right));
    }
    return now;
  }

  void close_window(double loss, std::int64_t right) {
    epoch.loss += loss;
    epoch.right += right;
    epoch.seen += window_seen;
    ops::fill_(window_loss, 0);
    ops::fill_(window_right, 0);
    window_seen = 0;
  }

  void finish_epoch(const Callbacks& callbacks) {
    EpochRecord record;
    record.epoch = loader->state().epoch + 1;
    if (epoch.seen > 0) {
      record.loss = epoch.loss / static_cast<double>(epoch.seen);
      record.accuracy = static_cast<double>(epoch.right) / static_cast<double>(epoch.seen);
    }
    record.seconds = epoch.seconds;
    if (test_set) {
      test();
      record.tested = true;
      record.test_loss = tested->loss;
      record.test_accuracy = tested->accuracy;
    }
    history.push_back(record);
    epoch = {};
    loader->next();  // its end: the next one begins
    last_step = Clock::now();
    if (callbacks.epoch) callbacks.epoch(record);
  }

  void test() {
    tested = train::evaluate(*classifier, test_set, 256, options.workers);
    tested_steps = optimizer->steps();
  }

  Checkpoint content() const {
    Checkpoint c;
    c.model = nn::to_json(*classifier->model());
    c.classes = classifier->classes();
    c.image = image;
    c.normalisation = classifier->normalisation();
    const auto state = optimizer->state();
    c.run = {.model_name = settings.model,
             .data = options.data,
             .height = options.height,
             .width = options.width,
             .epochs = settings.epochs,
             .loader = loader->state(),
             .optimizer_steps = state.steps,
             .lr = settings.lr,
             .schedule = settings.schedule,
             .parameter_steps = state.parameter_steps,
             .random = random,
             .epoch = epoch,
             .window_seen = window_seen,
             .history = history,
             .curve = curve};
    return c;
  }

  Options options;
  Settings settings;
  const DeviceHandle device;
  std::shared_ptr<const data::Dataset> train_set, test_set;
  std::string test_problem;
  Shape image;
  std::optional<Classifier> classifier;
  std::shared_ptr<optim::Adam> optimizer;
  std::unique_ptr<optim::CosineSchedule> schedule;  // null: the rate is constant
  std::unique_ptr<data::Loader> loader;
  nn::RandomState random;

  Totals epoch;
  Tensor window_loss, window_right;  // scalars: loss times samples, right answers
  std::int64_t window_seen = 0;
  std::vector<EpochRecord> history;
  std::vector<Point> curve;
  std::optional<Evaluation> tested;
  std::int64_t tested_steps = -1;

  bool warm = false;       // a step is done in this process
  bool consistent = true;  // false: a step was broken off
  Clock::time_point last_step, last_report;
  double busy_seconds = 0;
  std::int64_t busy_images = 0;
};

Trainer::Trainer(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
Trainer::~Trainer() = default;

void Trainer::run(const Callbacks& callbacks, std::int64_t steps) { impl_->run(callbacks, steps); }
bool Trainer::finished() const { return impl_->finished(); }
bool Trainer::can_save() const { return impl_->consistent; }

void Trainer::save(const std::string& path) const {
  check<ArgumentError>(impl_->consistent,
                       "[save] the first step was broken off: there is nothing to save");
  const interrupt::Hold hold;
  save_checkpoint(path, impl_->content(), *impl_->classifier->model(), impl_->optimizer->state(),
                  impl_->window_loss, impl_->window_right);
}

Evaluation Trainer::evaluate() {
  check<ArgumentError>(impl_->test_set != nullptr, "[evaluate] there is no test data: {}",
                       impl_->test_problem);
  if (!impl_->tested || impl_->tested_steps != steps()) {
    const ActiveDevice active(impl_->device);
    impl_->test();
  }
  return *impl_->tested;
}

std::shared_ptr<const data::Dataset> Trainer::test_data() const { return impl_->test_set; }
const std::string& Trainer::test_data_problem() const { return impl_->test_problem; }
const Classifier& Trainer::classifier() const { return *impl_->classifier; }
const DeviceHandle& Trainer::device() const { return impl_->device; }
const std::vector<EpochRecord>& Trainer::history() const { return impl_->history; }
const std::vector<Point>& Trainer::curve() const { return impl_->curve; }
std::string Trainer::model_name() const { return impl_->settings.model; }
std::string Trainer::data_directory() const { return impl_->options.data; }
std::int64_t Trainer::samples() const { return impl_->train_set->size(); }
std::int64_t Trainer::steps() const { return impl_->optimizer->steps(); }
std::int64_t Trainer::epochs() const { return impl_->settings.epochs; }
std::int64_t Trainer::batch() const { return impl_->settings.batch; }
double Trainer::lr() const { return impl_->settings.lr; }
std::string Trainer::schedule() const { return impl_->settings.schedule; }
std::uint64_t Trainer::seed() const { return impl_->settings.seed; }

}  // namespace netcl::train

// The fuzz targets without a fuzzer: every file of the corpus, and the same with damage done to it,
// the same in every run. fuzz_replay <corpus> [<mutations per target> [<target>]]
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "fuzz/fuzz.h"
#include "support/mutator.h"
#include "support/sanitizers.h"
#include "support/temp_dir.h"

namespace netcl::fuzz {
namespace {

// No input may ask for more than this on top of what the process has now.
void limit_memory(std::size_t bytes) {
  if (test::kSanitized) return;  // these reserve terabytes of addresses
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto most = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes;
  const rlimit limit{most, most};
  require(::setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit failed");
}

struct Tally {
  int accepted = 0, refused = 0;
  void operator()(bool was_accepted) { ++(was_accepted ? accepted : refused); }
};

bool run(const NamedTarget& target, const std::string& text) {
  return run_guarded(target.run,
                     Bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

// Keeps the input.
int report(const NamedTarget& target, const std::string& text, const char* what) {
  const auto path = "fuzz-" + target.name + "-finding";
  test::write_text(path, text);
  std::fprintf(stderr, "fuzz: %s: %s; the input is in %s\n", target.name.c_str(), what,
               path.c_str());
  return 1;
}

int replay(const NamedTarget& target, const std::filesystem::path& corpus, int mutations) {
  std::vector<std::string> seeds;
  for (const auto& file : std::filesystem::directory_iterator(corpus / target.name))
    seeds.push_back(test::read_text(file.path().string()));
  std::sort(seeds.begin(), seeds.end());  // directories have no order
  require(!seeds.empty(), "a target needs a corpus");
  Tally tally;
  std::string text;
  try {
    for (std::size_t i = 0; i < seeds.size() + static_cast<std::size_t>(mutations); ++i) {
      text = seeds[i % seeds.size()];
      if (i >= seeds.size()) text = test::Mutator(static_cast<unsigned>(i))(std::move(text));
      tally(run(target, text));
    }
  } catch (const std::exception& error) {
    return report(target, text, error.what());
  }
  std::printf("%-12s %6d inputs: %d accepted, %d refused\n", target.name.c_str(),
              tally.accepted + tally.refused, tally.accepted, tally.refused);
  return tally.accepted > 0 ? 0 : report(target, seeds[0], "nothing at all is accepted");
}

int replay_all(const std::filesystem::path& corpus, int mutations, const std::string& only) {
  auto all = targets();
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.name < b.name; });
  int bad = 0, tried = 0;
  for (const auto& target : all) {
    if (!only.empty() && target.name != only) continue;
    bad += replay(target, corpus, mutations);
    ++tried;
  }
  require(tried > 0, "there is no such target");
  return bad == 0 ? 0 : 1;
}

}  // namespace
}  // namespace netcl::fuzz

int main(int argc, char** argv) {
  using namespace netcl::fuzz;
  if (argc < 2) {
    std::fprintf(stderr, "fuzz_replay <corpus> [<mutations per target> [<target>]]\n");
    return 2;
  }
  limit_memory(std::size_t{1} << 30);
  return replay_all(argv[1], argc > 2 ? std::atoi(argv[2]) : 1000, argc > 3 ? argv[3] : "");
}

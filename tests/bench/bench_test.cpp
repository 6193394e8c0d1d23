// netcl bench: verdicts on made-up measurements, the protocol on the CPU backend, peers that
// misbehave.
#include "netcl/bench.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "bench/chart.h"
#include "bench/peer.h"
#include "bench/protocol.h"
#include "netcl/netcl.h"
#include "support/devices.h"

namespace netcl::bench {
namespace {

using nlohmann::json;

Measurement took(const std::string& contender, double seconds) {
  Measurement one;
  one.contender = contender;
  one.median = one.low = one.high = seconds;
  one.samples = 5;
  return one;
}

Row row_of(double own, std::vector<Measurement> peers) {
  Row row;
  row.what.id = "matmul 64";
  row.what.group = "matmul";
  row.what.parameters = R"({"kind": "matmul", "m": 64, "n": 64, "k": 64})";
  row.what.flops = 1e9;
  row.what.bytes = 1e8;
  row.what.goal = 0.95;
  row.measurements = {took("netcl opencl", own), took("netcl cpu", own / 100)};
  for (auto& one : peers) row.measurements.push_back(std::move(one));
  return row;
}

const Limits kLimits{2e11, 2e10, 1e10};

TEST(Verdict, ComparesWithTheFastestPeer) {
  const auto row = row_of(0.010, {took("A", 0.020), took("B", 0.0094), took("C", 0.5)});
  const auto v = verdict(row, kLimits);
  ASSERT_NE(v.best_peer, nullptr);
  EXPECT_EQ(v.best_peer->contender, "B");
  EXPECT_NEAR(v.ratio, 0.94, 1e-12);
  EXPECT_FALSE(v.met);
  EXPECT_NEAR(v.of_limit, 0.5, 1e-12);  // both by FMA and by bandwidth
  EXPECT_TRUE(verdict(row_of(0.009, {took("B", 0.0094)}), kLimits).met);
}

TEST(Verdict, LeavesOutWhoWasWrongOrDidNotRun) {
  auto wrong = took("wrong", 0.001), declined = took("declined", 0.001);
  wrong.differs = true;
  declined.declined = "no such op";
  const auto row = row_of(0.010, {wrong, declined, took("right", 0.011)});
  EXPECT_EQ(verdict(row, kLimits).best_peer->contender, "right");
  EXPECT_FALSE(verdict(row_of(0.010, {}), kLimits).has_goal);
}

TEST(Verdict, MayBeAgainstOneLibraryAndTheBandwidth) {
  auto row = row_of(0.010, {took("PyTorch 2", 0.012), took("other", 0.001)});
  row.what.goal = 1;
  row.what.against = "PyTorch";
  EXPECT_TRUE(verdict(row, kLimits).met);
  row.what.bandwidth_goal = 0.9;  // it has half of it
  EXPECT_FALSE(verdict(row, kLimits).met);
  row.what.bandwidth_goal = 0.4;
  EXPECT_TRUE(verdict(row, kLimits).met);
}

TEST(Verdict, TakesTheMemoryOfTheSameMinute) {
  auto row = row_of(0.010, {});
  row.what.goal = 0;
  row.what.bandwidth_goal = 0.9;
  EXPECT_NEAR(verdict(row, kLimits).of_bandwidth, 0.5, 1e-12);
  row.what.reads_only = true;
  EXPECT_NEAR(verdict(row, kLimits).of_bandwidth, 1.0, 1e-12);
  row.memory_limit = 1.25e10;  // faster than at the beginning of the run
  EXPECT_NEAR(verdict(row, kLimits).of_bandwidth, 0.8, 1e-12);
  EXPECT_FALSE(verdict(row, kLimits).met);
}

TEST(Verdict, SumsUpHowNetclStandsBesideEach) {
  auto wrong = took("B", 0.001);
  wrong.differs = true;
  Report report;
  report.rows = {row_of(0.010, {took("A", 0.020), took("B", 0.5)}),
                 row_of(0.010, {took("A", 0.005), wrong}), row_of(0.010, {took("A", 0.040)})};
  const auto all = standings(report);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].contender, "netcl cpu");
  EXPECT_EQ(all[1].contender, "A");
  EXPECT_EQ(all[1].rows, 3u);
  EXPECT_NEAR(all[1].least, 0.5, 1e-12);
  EXPECT_NEAR(all[1].median, 2, 1e-12);
  EXPECT_NEAR(all[1].most, 4, 1e-12);
  EXPECT_EQ(all[2].rows, 1u) << "a wrong result is not compared";
  EXPECT_NE(table(report).find("beside A: 0.5 to 4 times as fast, median 2 (3 rows)"),
            std::string::npos);
}

TEST(Verdict, FindsCliffsBetweenNeighbours) {
  Report report;
  const auto add = [&](const std::string& id, double seconds) {
    auto row = row_of(seconds, {});
    row.what.id = id;
    row.what.group = "sweep: matmul";
    report.rows.push_back(row);
  };
  add("matmul 127", 0.020);
  add("matmul 128", 0.010);
  add("matmul 256", 0.050);
  ASSERT_EQ(cliffs(report).size(), 1u);
  EXPECT_NE(cliffs(report)[0].find("matmul 127 runs at 50 %"), std::string::npos);
}

TEST(Cases, HaveNamesOfTheirOwnAndTakeFilters) {
  Options options;
  options.sweeps = true;
  std::set<std::string> seen;
  for (const auto& one : cases(options)) {
    EXPECT_TRUE(seen.insert(one.group + one.id).second) << one.id;
    EXPECT_TRUE(json::parse(one.parameters).contains("kind")) << one.id;
  }
  options.filter = "softmax 4096";
  EXPECT_EQ(cases(options).size(), 1u);
}

TEST(Reports, HoldEveryRow) {
  Report report;
  report.limits = kLimits;
  report.rows = {row_of(0.010, {took("<B>", 0.0094)})};
  report.rows[0].measurements[2].differs = true;
  const auto text = table(report);
  EXPECT_NE(text.find("| matmul 64"), std::string::npos) << text;
  EXPECT_NE(text.find("DIFFERS: matmul 64 of <B>"), std::string::npos) << text;
  const auto page = html(report);
  EXPECT_NE(page.find("&lt;B&gt;"), std::string::npos);
  EXPECT_EQ(page.find("<B>"), std::string::npos);
  std::istringstream lines(json_line(report.rows[0]));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    EXPECT_EQ(json::parse(line)["case"], "matmul 64");
  EXPECT_EQ(count, 3u);
}

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Reports, ChartsLeaveOutWhatHasNoLogarithm) {
  EXPECT_EQ(svg_of({"empty", "x", "y", {{"a", "first", {{0, 1}, {1, -1}}, {}, true, true}}}), "");
  const auto svg =
      svg_of({"one", "x", "y", {{"a", "first", {{1, 1}, {0, 5}, {100, 10}}, {}, true, true}}});
  EXPECT_EQ(count_of(svg, "<circle"), 2u);
}

TEST(Reports, BarsShowRatiosAndGoals) {
  EXPECT_EQ(svg_of("none", std::vector<Bar>{{"a", "met", 0}, {"b", "met", NAN}}), "");
  const auto svg = svg_of("two", {{"slow <x>", "missed", 0.5, 0.8}, {"fast", "met", 3, 1}});
  EXPECT_EQ(count_of(svg, "<rect"), 2u);
  EXPECT_EQ(count_of(svg, "stroke-width=\"2\""), 1u) << "a goal of 1 is the axis";
  EXPECT_NE(svg.find("slow &lt;x&gt;"), std::string::npos);
  EXPECT_NE(svg.find(">0.50<"), std::string::npos);

  Report report;
  report.limits = kLimits;
  report.rows = {row_of(0.010, {took("peer", 0.0094)})};
  EXPECT_EQ(count_of(html(report), "<rect"), 1u);
  report.rows[0].what.goal = 0;
  EXPECT_EQ(count_of(html(report), "<rect"), 0u) << "without a goal there is nothing to show";
}

std::vector<json> served(const std::string& requests, const std::string& device = "cpu") {
  std::istringstream in(requests);
  std::ostringstream out;
  serve(device, in, out);
  std::vector<json> answers;
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) answers.push_back(json::parse(line));
  return answers;
}

TEST(Protocol, NetclAnswers) {
  const auto answers =
      served(R"({"case": {"kind": "matmul", "m": 3, "n": 4, "k": 5}, "seconds": 0.001})"
             "\n");
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0]["name"], "netcl cpu");
  EXPECT_GE(answers[1]["seconds"].size(), 3u);
  // The product of the values that every contender makes for itself.
  const auto a = input_values(15, 1), b = input_values(20, 2);
  double first = 0;
  for (std::size_t k = 0; k < 5; ++k) first += double{a[k]} * double{b[k * 4]};
  EXPECT_NEAR(answers[1]["probe"][0].get<double>(), first, 1e-6);
}

TEST(Protocol, NamesKernelsThatWereStruckOut) {
  NETCL_NEED_OPENCL();
  const std::string request = R"({"seconds": 0, "case": {"kind": "add", "n": 7}})"
                              "\n";
  const auto before = served(request, "opencl");
  EXPECT_FALSE(before.at(1).contains("remarks")) << before[1].dump();
  const auto& profile = device_profile(manager().default_device("opencl").queue);
  get_kernel_selector().strike_out(profile, "no_such_kernel", "the compiler said so");
  const auto after = served(request, "opencl");
  ASSERT_TRUE(after.at(1).contains("remarks")) << after[1].dump();
  EXPECT_EQ(after[1]["remarks"][0], "no_such_kernel is not used: the compiler said so");
}

TEST(Protocol, EveryKindRunsOnTheCpuBackend) {
  std::string requests;
  const std::vector<std::string> kinds = {
      R"({"kind": "conv2d", "n": 1, "c": 2, "size": 5, "k": 3, "filter": 3, "stride": 1, "padding": 1, "groups": 1})",
      R"({"kind": "conv2d_data", "n": 1, "c": 2, "size": 5, "k": 3, "filter": 3, "stride": 1, "padding": 1, "groups": 1})",
      R"({"kind": "conv2d_weights", "n": 1, "c": 2, "size": 5, "k": 2, "filter": 3, "stride": 1, "padding": 1, "groups": 2})",
      R"({"kind": "add", "n": 7})",
      R"({"kind": "chain", "n": 7})",
      R"({"kind": "sum", "n": 7})",
      R"({"kind": "softmax", "rows": 3, "columns": 5})",
      R"({"kind": "layer_norm", "rows": 3, "columns": 5})",
      R"({"kind": "launches", "count": 3})",
      R"({"kind": "train", "model": "mlp", "batch": 2})"};
  for (const auto& kind : kinds) requests += R"({"seconds": 0, "case": )" + kind + "}\n";
  const auto answers = served(requests);
  ASSERT_EQ(answers.size(), kinds.size() + 1);
  for (std::size_t i = 1; i < answers.size(); ++i)
    EXPECT_FALSE(answers[i].contains("declined")) << kinds[i - 1] << answers[i].dump();
}

TEST(Protocol, EveryOpOfTheCasesRunsOnTheCpuBackend) {
  Options options;
  options.filter = "ops";
  std::string requests;
  std::vector<json> asked;
  for (const auto& one : cases(options)) {
    auto parameters = json::parse(one.parameters);
    for (auto& size : parameters.at("shape")) size = std::min(size.get<int>(), 8);
    requests += json{{"seconds", 0}, {"case", parameters}}.dump() + "\n";
    asked.push_back(std::move(parameters));
  }
  ASSERT_GT(asked.size(), 30u);
  const auto answers = served(requests);
  ASSERT_EQ(answers.size(), asked.size() + 1);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    EXPECT_FALSE(answers[i + 1].contains("declined")) << asked[i] << answers[i + 1];
    EXPECT_FALSE(answers[i + 1].value("probe", json::array()).empty()) << asked[i];
  }
}

TEST(Protocol, BadRequestsAreDeclinedWithTheRule) {
  const auto answers = served(
      "no json\n"
      "{}\n"
      R"({"case": {"kind": "fly"}})"
      "\n"
      R"({"case": {"kind": "matmul", "m": -1, "n": 4, "k": 5}})"
      "\n"
      R"({"case": {"kind": "limit_fma"}})"
      "\n"
      R"({"case": {"kind": "op", "op": "fly", "shape": [3]}})"
      "\n"
      R"({"case": {"kind": "op", "op": "gelu", "shape": [3, 0]}})"
      "\n");
  ASSERT_EQ(answers.size(), 8u);
  for (std::size_t i = 1; i < answers.size(); ++i)
    EXPECT_TRUE(answers[i].contains("declined")) << i;
  EXPECT_NE(answers[3]["declined"].get<std::string>().find("fly"), std::string::npos);
  EXPECT_NE(answers[4]["declined"].get<std::string>().find("'m' must be"), std::string::npos);
  EXPECT_NE(answers[6]["declined"].get<std::string>().find("fly"), std::string::npos);
  EXPECT_NE(answers[7]["declined"].get<std::string>().find("must be positive"), std::string::npos);
}

TEST(Peers, SayWhoTheyAreOrAreNotStarted) {
  EXPECT_THROW(Peer({"true"}), Error);
  EXPECT_THROW(Peer({"no-such-program-at-all"}), Error);
  EXPECT_THROW(Peer({"echo", "hello"}), Error);
}

TEST(Peers, ThatDieDeclineFromThenOn) {
  Peer peer({"sh", "-c", R"(echo '{"name": "short", "contenders": ["a", "b"]}'; read line)"});
  EXPECT_EQ(peer.name(), "short");
  EXPECT_EQ(peer.contenders().size(), 2u);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(peer.ask({{"case", 1}}).contains("declined"));
}

TEST(Peers, ThatTalkNonsenseDecline) {
  Peer peer(
      {"sh", "-c", R"(echo '{"name": "n", "contenders": [""]}'; while read l; do echo x; done)"});
  const auto answer = peer.ask({{"case", 1}});
  EXPECT_NE(answer["declined"].get<std::string>().find("not JSON"), std::string::npos);
}

TEST(Run, NeedsACase) {
  Options options;
  options.filter = "nothing has this name";
  EXPECT_THROW(run(options), ArgumentError);
}

Options small_run() {
  Options options;
  options.self = std::string(NETCL_BIN_DIR) + "/netcl";
  options.device = "cpu";
  options.filter = "matmul";
  options.rounds = 1;
  options.seconds = 0.001;
  return options;
}

TEST(Run, InterruptedKeepsWhatWasMeasured) {
  auto options = small_run();
  options.finished = [](const Report&, const Row&) { throw Interrupted("[test] Ctrl+C"); };
  const auto report = run(options);
  EXPECT_TRUE(report.interrupted);
  ASSERT_EQ(report.rows.size(), 1u);
  EXPECT_GT(report.rows[0].measurements.at(0).median, 0);
  EXPECT_NE(table(report).find("interrupted after 1 of"), std::string::npos);
}

TEST(Run, MeasuresTheMemoryInTurnsWithWhatIsBoundByIt) {
  NETCL_NEED_OPENCL();
  auto options = small_run();
  options.device = "opencl";
  options.filter = "sum 16M";
  const auto report = run(options);
  ASSERT_EQ(report.rows.size(), 1u);
  EXPECT_GT(report.limits.flops, 0);
  EXPECT_GT(report.limits.bytes, 0);
  EXPECT_GT(report.limits.read_bytes, 0);
  EXPECT_GT(report.rows[0].memory_limit, 0);
  EXPECT_NE(json_line(report.rows[0]).find("memory_limit"), std::string::npos);
}

TEST(Run, WhatContendersHadToDoWithoutIsANoteOnce) {
  auto options = small_run();
  options.filter = "matmul 1";  // several cases
  options.peers = {
      R"(sh -c 'echo "{\"name\": \"A\", \"contenders\": [\"\"]}"; )"
      R"(while read l; do echo "{\"seconds\": [1], \"probe\": [0], \"remarks\": [\"x is not used\"]}"; done')"};
  const auto report = run(options);
  EXPECT_GT(report.rows.size(), 1u);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0], "A: x is not used");
  EXPECT_NE(table(report).find("note: A: x is not used"), std::string::npos);
}

TEST(Run, AStartThatFailsIsANote) {
  auto options = small_run();
  options.filter = "matmul 64";
  options.start_up = true;
  // The contender is there for the case and gone for the start.
  options.finished = [&](const Report&, const Row&) { options.self = "/nonexistent/netcl"; };
  const auto report = run(options);
  EXPECT_FALSE(report.interrupted);
  EXPECT_FALSE(report.rows.empty());
  EXPECT_EQ(report.first_step_cold, 0);
  EXPECT_EQ(report.notes.size(), 1u);
}

}  // namespace
}  // namespace netcl::bench

#include "base/env.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "netcl/error.h"
#include "support/scoped_env.h"
#include "support/temp_dir.h"

namespace netcl {
namespace {

using test::ScopedEnv;

TEST(Environment, DefaultsAndValues) {
  const ScopedEnv unset("NETCL_ASYNC_H2D", nullptr);
  EXPECT_TRUE(env::flag("NETCL_ASYNC_H2D"));
  for (const char* off : {"0", "", "false", "off", "no"}) {
    const ScopedEnv scope("NETCL_ASYNC_H2D", off);
    EXPECT_FALSE(env::flag("NETCL_ASYNC_H2D")) << off;
  }
  const ScopedEnv number("NETCL_MAX_CACHED_GB", "2.5");
  EXPECT_EQ(env::number("NETCL_MAX_CACHED_GB"), 2.5);
}

TEST(Environment, NonsenseFallsBackToTheDefault) {
  const ScopedEnv scope("NETCL_PINNED_STAGING_MB", "many");
  EXPECT_EQ(env::integer("NETCL_PINNED_STAGING_MB"), 512);
}

TEST(Environment, ForAnotherProcess) {
  const ScopedEnv old("NETCL_COMPILE_AHEAD", "1"), stays("NETCL_ASYNC_H2D", "0"),
      longer("NETCL_COMPILE_AHEAD_NOT", "x");
  const auto all = environment_with({"NETCL_COMPILE_AHEAD=worker", "NETCL_NEW="});
  const auto count = [&](std::string_view entry) {
    return std::count(all.begin(), all.end(), entry);
  };
  EXPECT_EQ(count("NETCL_COMPILE_AHEAD=worker"), 1);
  EXPECT_EQ(count("NETCL_COMPILE_AHEAD=1"), 0);
  EXPECT_EQ(count("NETCL_COMPILE_AHEAD_NOT=x"), 1);
  EXPECT_EQ(count("NETCL_ASYNC_H2D=0"), 1);
  EXPECT_EQ(count("NETCL_NEW="), 1);
}

TEST(Environment, OnlyNamesOfTheTable) { EXPECT_THROW(env::text("NETCL_NO_SUCH"), Error); }

TEST(Environment, CacheDirectory) {
  const ScopedEnv own("NETCL_CACHE_DIR", nullptr), xdg("XDG_CACHE_HOME", "/x"),
      home("HOME", "/home/someone");
  EXPECT_EQ(cache_directory(), "/x/netcl");
  {
    const ScopedEnv relative("XDG_CACHE_HOME", "not/absolute");
    EXPECT_EQ(cache_directory(), "/home/someone/.cache/netcl");
  }
  const ScopedEnv wins("NETCL_CACHE_DIR", "/own");
  EXPECT_EQ(cache_directory(), "/own");
}

TEST(Environment, TheDocumentedTableIsTheRealOne) {
  const auto page = test::read_text(std::string(NETCL_SOURCE_DIR) + "/../docs/environment.md");
  EXPECT_NE(page.find(environment_markdown()), std::string::npos)
      << "docs/environment.md is not up to date: `netcl env --markdown` prints the table";
}

}  // namespace
}  // namespace netcl

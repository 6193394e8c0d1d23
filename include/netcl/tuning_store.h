// What tuning found out, kept between processes: for a device, a kernel and a problem, the best
// work-group size and parameters. docs/files.md describes the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace netcl {

struct TuningKey {
  std::string device, driver;  // a result never applies to another device or driver version
  std::string kernel;          // variants that live side by side need names of their own
  std::string source_hash;     // of source and flags
  std::vector<std::size_t> global_size;  // or the sizes that describe the problem; at most 16
  std::string dtypes;                    // "float32", "float16,float32"

  std::string to_string() const;  // for people: "matmul (256, 256) float32 on <device>"
  auto operator<=>(const TuningKey& other) const = default;
  bool operator==(const TuningKey& other) const = default;
};

struct TuningRecord {
  // One configuration that was tried. An infinite time means that it is not usable: the note says
  // why (wrong result, too many resources).
  struct Candidate {
    std::vector<std::size_t> local_size;
    std::map<std::string, std::int64_t> parameters;
    double runtime_us = 0;
    std::string note;
    bool operator==(const Candidate& other) const = default;
  };

  std::vector<std::size_t> local_size;             // of the best; empty: the driver's choice
  std::map<std::string, std::int64_t> parameters;  // tunables such as TILE_M, by their C names
  double runtime_us = 0;
  double default_us = 0;  // without tuning; 0 when it was not measured
  std::vector<Candidate> candidates;
  bool operator==(const TuningRecord& other) const = default;
};

// Safe to use from any number of threads; the file from any number of processes.
class TuningStore {
 public:
  // Without a path it lives in memory alone. The file is read at the first use; when it is
  // malformed then, that is one warning, it is moved aside (".bad") and the store starts empty.
  explicit TuningStore(std::string path = {});
  ~TuningStore();
  TuningStore(const TuningStore&) = delete;
  TuningStore& operator=(const TuningStore&) = delete;

  std::optional<TuningRecord> lookup(const TuningKey& key) const;
  // The same without a copy, for use at every launch; null when there is none.
  std::shared_ptr<const TuningRecord> find(const TuningKey& key) const;

  // Replaces what is there, and drops what was found for an older source of the same kernel with
  // the same dtypes on the same device and driver. ArgumentError on what a file could not hold.
  void record(const TuningKey& key, TuningRecord value);

  // Merges with what other processes wrote meanwhile and replaces the file; whatever was saved
  // once stays, also when a process is killed at any moment. FileError when it cannot be written.
  void save();
  // Into another file, merging with its content. FormatError when that is not a tuning file.
  void save(const std::string& path);
  // Trouble is one warning; only Interrupted gets out.
  void save_quietly();

  // Takes over the entries of a file, in the place of equal keys. FileError when unreadable,
  // FormatError when malformed; then nothing has changed.
  void load(const std::string& path);

  // Forgets everything; the next save() replaces the file instead of merging.
  void clear();

  std::vector<std::pair<TuningKey, TuningRecord>> entries() const;  // in the order of the keys
  std::size_t size() const;
  const std::string& path() const;

 private:
  friend TuningStore& default_tuning_store();
  struct State;
  std::unique_ptr<State> state_;
};

// The store in NETCL_TUNING_FILE, else in tuning.json of cache_directory(), as these were at the
// first call; in memory alone when no cache directory is known.
TuningStore& default_tuning_store();

}  // namespace netcl

# The front door. `make` alone lists the targets; `make demo` and `make test` set up everything they need.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Tools keep caches below HOME; a bare CI account may not have one that can be written.
ifneq ($(shell test -d "$${HOME:-}" -a -w "$${HOME:-}" && echo yes),yes)
export HOME := $(CURDIR)/build/home
$(shell mkdir -p "$(HOME)")
endif

PYTHON := .venv/bin/python
say = @printf '\n== %s\n' "$(1)"

.PHONY: help setup build test demo bench bench-peers bench-parts format lint tidy dev test-dev test-release test-asan \
  test-tsan test-cpu-only test-torch test-large test-fusion test-faults lab test-matrix gpu-audit selftest docs-ops wheel test-wheel clean \
  fuzz test-oclgrind test-signals soak test-valgrind

help:  ## this list
	@echo "netcl: targets"
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 18

setup:  ## install what is missing: Debian packages, the private Python environment .venv
	$(call say,setup)
	@scripts/setup.sh

# Debian packages that one target alone needs.
define packages
	@dpkg-query -W $(1) >/dev/null 2>&1 || { \
	  sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$sudo apt-get install -y -qq --no-install-recommends $(1); }
endef

# One configure per preset; CMake re-configures by itself afterwards.
build/%/build.ninja: CMakePresets.json | setup
	$(call say,configure: preset $*)
	@cmake --preset $* --log-level=NOTICE
	@touch $@

define build_preset
	$(call say,build: preset $(1))
	@cmake --build --preset $(1)
endef

define test_preset
	$(call say,test: preset $(1))
	@ctest --preset $(1)
endef

build: build/release/build.ninja  ## build the release preset (CLI at build/release/bin/netcl)
	$(call build_preset,release)

dev: build/dev/build.ninja  ## build the dev preset
	$(call build_preset,dev)

test: setup  ## everything CI runs: lint, release tests, cpu-only tests
	@$(MAKE) lint
	@$(MAKE) test-release
	@$(MAKE) test-cpu-only
	@echo; echo "== all tests passed"

test-release: build  ## build and test the release preset
	$(call test_preset,release)

test-dev test-asan test-tsan test-cpu-only: test-%: build/%/build.ninja
	$(call build_preset,$*)
	$(call test_preset,$*)

test-dev:  ## build and test the dev preset (inner loop)
test-asan:  ## tests under AddressSanitizer and UndefinedBehaviorSanitizer (installs clang-14)
test-tsan:  ## tests under ThreadSanitizer
test-cpu-only:  ## tests of the build without OpenCL

# Debian's Python, because PyTorch is too large for .venv.
test-torch: build  ## the references also against PyTorch (installs Debian's python3-torch)
	$(call say,test: references against PyTorch)
	$(call packages,python3-torch python3-scipy python3-pytest)
	@NETCL_REFERENCE_DUMP=build/release/bin/reference_dump PYTHONDONTWRITEBYTECODE=1 \
	  /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/python/test_references.py

selftest: build  ## every op, kernel, dtype and sample on the OpenCL device and the CPU backend (slow: compiles all kernels)
	$(call say,selftest: every case on the best device)
	@build/release/bin/netcl selftest
	$(call say,selftest: every case on the CPU backend)
	@build/release/bin/netcl selftest --device cpu

test-large: build  ## tensors of more than 2^31 elements (needs 5 GB of memory; not part of test)
	$(call say,test: large tensors)
	@NETCL_TEST_LARGE=1 build/release/bin/ops_test --gtest_filter='Large.*'

test-fusion: build  ## 1000 random graphs on the OpenCL device, fused and not (slow: each is a compilation)
	$(call say,test: fusion of random graphs)
	@FUSION_GRAPHS=1000 build/release/bin/jit_test --gtest_filter='FusionProperty.*'

# With the compiler and flags of the release preset, so that ccache knows most of it. WHEEL_PYTHON=/path/to/python3.13
# makes and tests the wheel of another interpreter, in environments of its own.
WHEEL_PYTHON ?=
wheel_of := $(if $(WHEEL_PYTHON),-$(notdir $(WHEEL_PYTHON)))
wheel: setup  ## build the Python wheel into build/dist
	$(call say,wheel)
	@rm -rf build/dist$(wheel_of)
	@builder=$(PYTHON); if [ -n "$(WHEEL_PYTHON)" ]; then builder=build/wheel-builder$(wheel_of)/bin/python; \
	  [ -x $$builder ] || $(WHEEL_PYTHON) -m venv build/wheel-builder$(wheel_of); \
	  $$builder -m pip install --quiet --disable-pip-version-check "scikit-build-core>=0.10" "nanobind>=3.1,<4"; fi; \
	CXX="$${CXX:-c++}" $$builder -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	  --config-settings=cmake.define.NETCL_WERROR=ON -w build/dist$(wheel_of) .
	@ls build/dist$(wheel_of)/*.whl

# A new environment that has never seen the sources; the tests are the same.
test-wheel: wheel  ## install the wheel into a fresh environment and run the Python tests there
	$(call say,test: the wheel in a fresh environment)
	@rm -rf build/wheel-venv$(wheel_of) && $(or $(WHEEL_PYTHON),python3) -m venv build/wheel-venv$(wheel_of)
	@build/wheel-venv$(wheel_of)/bin/python -m pip install --quiet --disable-pip-version-check \
	  "$$(echo build/dist$(wheel_of)/netcl-*.whl)[test]"
	@cd build && XDG_CACHE_HOME="$(CURDIR)/build/release/test-cache" PYTHONDONTWRITEBYTECODE=1 \
	  wheel-venv$(wheel_of)/bin/python -m pytest -q -p no:cacheprovider "$(CURDIR)/tests/python"

test-faults: build  ## every OpenCL call of a session fails once with every plausible code
	$(call say,test: faults)
	@FAULT_TURNS=4 OPENCL_LAYERS=$(CURDIR)/build/release/libnetcl_fault_layer.so \
	  build/release/bin/faults_test

# FUZZ="--jobs 4" and the like are further arguments of scripts/fuzz.py.
FUZZ_SECONDS ?= 600
FUZZ ?=
fuzz: build/fuzz/build.ninja  ## libFuzzer over every reader, FUZZ_SECONDS=600 for each target (installs clang-14)
	$(call say,fuzz)
	@cmake --build --preset fuzz
	@scripts/fuzz.py --seconds $(FUZZ_SECONDS) $(FUZZ)
# clang has libFuzzer, and compiles for AddressSanitizer and UndefinedBehaviorSanitizer together sooner than g++.
build/fuzz/build.ninja build/asan/build.ninja: | clang-packages
.PHONY: clang-packages
clang-packages:
	$(call packages,clang-14 libomp-14-dev libclang-rt-14-dev)

test-oclgrind: build  ## every kernel in Oclgrind: races, uninitialised values, bounds (slow; installs oclgrind)
	$(call say,test: kernels in Oclgrind)
	$(call packages,oclgrind)
	@scripts/oclgrind.py

test-signals: build  ## SIGINT and SIGTERM at 100 random moments of a training run
	$(call say,test: signals)
	@scripts/test_signals.py --moments 100
	$(call say,test: signals on the CPU backend)
	@OMP_NUM_THREADS=1 scripts/test_signals.py --moments 100 --device cpu

soak: build  ## 20000 training steps with changing shapes: memory, cache directory, losses
	$(call say,soak)
	@build/release/bin/soak 20000
	@OMP_NUM_THREADS=1 build/release/bin/soak 20000 cpu

test-valgrind: build  ## memory of a session on the CPU backend and of the readers (installs valgrind)
	$(call say,test: valgrind)
	$(call packages,valgrind)
	@scripts/valgrind.sh

lab:  ## install ten OpenCL implementations into build/lab (as root; a few GB)
	$(call say,lab)
	@scripts/lab.py install

# MATRIX="--stride 1" runs all samples, MATRIX="--full --stride 1" all dtypes too: hours for each implementation.
MATRIX ?= --stride 8
test-matrix: build  ## the self-test of all ops on every implementation that make lab has installed (slow)
	$(call say,test: every OpenCL implementation)
	@scripts/lab.py matrix $(MATRIX)

# GPU_AUDIT=--quick compiles one program of each kernel and dtype.
gpu-audit: build  ## compile every kernel for eleven GPUs, check registers, spills and occupancy (as root; slow the first time)
	$(call say,gpu-audit: compilers)
	@scripts/lab.py compilers
	$(call say,gpu-audit)
	@cmake --build --preset release --target netcl_pretend_layer kernel_record
	@scripts/gpu_audit.py $(GPU_AUDIT)

docs-ops: build  ## write the table of docs/ops.md again
	@scripts/update_ops_table.py build/release/bin/netcl

demo: build  ## show the devices, compute with a tensor, train a network to read digits
	$(call say,demo: the devices of this machine)
	@build/release/bin/netcl devices
	$(call say,demo: first steps with tensors)
	@build/release/bin/example_first_steps
	$(call say,demo: a network learns to read digits)
	@build/release/bin/netcl train --data data/mnist --model cnn --epochs 1 \
	  --save build/demo.safetensors --report build/demo.html
	@echo; echo "open build/demo.html for the curves, or: build/release/bin/netcl eval build/demo.safetensors"

# The libraries to compare with: Debian's, PyTorch (some GB) and PyPI's netcl in environments of their own.
bench-peers: setup  ## install the libraries that bench compares netcl with
	$(call say,bench: peers)
	$(call packages,libopenblas-dev libclblast-dev)
	@[ -x build/bench-venv/bin/python ] || python3 -m venv build/bench-venv
	@build/bench-venv/bin/python -c 'import torch, numpy' 2>/dev/null || \
	  build/bench-venv/bin/python -m pip install --quiet --disable-pip-version-check torch numpy
	@[ -x build/pypi-netcl-venv/bin/python ] || python3 -m venv build/pypi-netcl-venv
	@build/pypi-netcl-venv/bin/python -c 'import netcl' 2>/dev/null || \
	  build/pypi-netcl-venv/bin/python -m pip install --quiet --disable-pip-version-check netcl==0.4.4 numpy
	@cmake --preset release --log-level=NOTICE

bench: bench-peers build  ## netcl beside the hardware's limits and other libraries: table, build/bench.jsonl, build/bench.html
	$(call say,bench)
	@cmake --build --preset release --target bench_peers
	@peers=(); for peer in build/release/bin/bench_peer_*; do peers+=(--peer "$$peer"); done; \
	  build/release/bin/netcl bench "$${peers[@]}" --json build/bench.jsonl --report build/bench.html \
	    --peer "build/bench-venv/bin/python bench/peers/torch_peer.py" \
	    --peer "build/pypi-netcl-venv/bin/python bench/peers/pypi_netcl_peer.py" \
	    --peer "build/pypi-netcl-venv/bin/python bench/peers/pypi_netcl_peer.py optimised"

bench-parts: build  ## the small benchmarks: launches, memory, fusion, capture, selection
	@for bench in build/release/bin/bench_*; do \
	  case "$$bench" in *bench_peer_*|*bench_test) continue ;; esac; \
	  printf '\n== bench: %s\n' "$${bench##*/}"; "$$bench"; done

format:  ## rewrite all C++ and OpenCL sources with clang-format
	@scripts/format.sh

lint:  ## format, include-direction and environment checks (fast; changes nothing)
	$(call say,lint)
	@scripts/format.sh --check
	@python3 scripts/check_includes.py --self-test
	@python3 scripts/check_includes.py
	@python3 scripts/check_env.py --self-test
	@python3 scripts/check_env.py
	@python3 scripts/gpu_audit.py --self-test

tidy: build/dev/build.ninja  ## clang-tidy over the library and the tools (slow)
	$(call build_preset,dev)
	@run-clang-tidy-14 -quiet -p build/dev '/(src|tools)/.*\.cpp$$'

clean:  ## remove every build; keeps .venv
	rm -rf build

#!/usr/bin/env bash
# Prepares a Debian 12 machine: system packages and the private Python environment .venv.
# Safe to run at any time: when nothing is missing it only looks, in well under a second.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(
  g++ cmake ninja-build ccache pkg-config git                       # build
  libfmt-dev nlohmann-json3-dev libcli11-dev opencl-c-headers libdnnl-dev  # libraries
  zlib1g-dev libzip-dev libpng-dev libjpeg62-turbo-dev              # files: gzip, npz, images
  libgtest-dev libbenchmark-dev                                     # tests and benchmarks
  ocl-icd-libopencl1 pocl-opencl-icd clinfo                         # an OpenCL driver for any CPU
  clang-format-14 clang-tidy-14                                     # format and lint
  python3 python3-venv python3-dev
)

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

install_packages() {
  local missing=() package
  for package in "${packages[@]}"; do
    if ! dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed; then
      missing+=("$package")
    fi
  done
  if [ ${#missing[@]} = 0 ]; then
    echo "setup: system packages are in place"
    return
  fi
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    echo "setup: these packages are missing and this account is neither root nor has sudo. As root:" >&2
    echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  echo "setup: installing ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" </dev/null
}

make_venv() {
  local wanted=scripts/requirements-dev.txt have=.venv/.requirements
  if [ -x .venv/bin/python ] && .venv/bin/python -c '' 2>/dev/null && cmp -s "$wanted" "$have"; then
    echo "setup: .venv is in place"
    return
  fi
  echo "setup: making the private Python environment .venv"
  # --clear only for a broken one: an environment that works keeps what else was installed into it.
  if ! { [ -x .venv/bin/python ] && .venv/bin/python -m pip --version >/dev/null 2>&1; }; then
    python3 -m venv --clear .venv
  fi
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input -r "$wanted"
  cp "$wanted" "$have"
}

if ! command -v dpkg-query >/dev/null; then
  echo "setup: this is not Debian; install these packages' equivalents yourself: ${packages[*]}" >&2
else
  install_packages
fi
make_venv

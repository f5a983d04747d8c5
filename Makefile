# SPDX-License-Identifier: Apache-2.0
# Each target installs what is missing (scripts/packages.txt), configures and builds; CMake and Ninja do the work.
#   make build     everything, into build/release/{bin,lib}     make bench    benchmarks
#   make demo      reads handwritten digits with trtexec        make format   clang-format on every source file
#   make test      what every change must pass                  make fuzz     each fuzz target for FUZZ_SECONDS (600)
#   make test-all  the long tests and the sanitizers            make clean    removes build/
#   make train     trains the demo's model again
#   make bench-peers  this engine beside ONNX Runtime and OpenVINO; PEERS_ARGS="--models resnet18 --rounds 5" and the like
SHELL := /bin/bash
JOBS ?= $(shell nproc)
export JOBS

# What these targets need, and no more.
DEMO_TARGETS := trtexec digits
PEERS_TARGETS := engine_worker fma_peak bench_gemm

.PHONY: build demo test test-all bench bench-peers format fuzz train clean

build:
	@scripts/setup.sh build
	cmake --preset release
	cmake --build --preset release -j $(JOBS)

demo:
	@scripts/setup.sh build
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target $(DEMO_TARGETS)
	@scripts/demo.sh

test test-all:
	@scripts/setup.sh build test $(if $(filter test-all,$@),fuzz)
	cmake --preset release
	cmake --build --preset release -j $(JOBS)
	@$(if $(filter test,$@),scripts/test.sh -LE '^long$$',status=0; scripts/test.sh || status=1; scripts/sanitize.sh || status=1; exit $$status)

bench:
	@scripts/setup.sh build
	cmake --preset release
	cmake --build --preset release -j $(JOBS)
	@scripts/bench.sh

bench-peers:
	@scripts/setup.sh build peers
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target $(PEERS_TARGETS)
	.venv/bin/python bench/cpu_peers.py $(PEERS_ARGS)

format:
	@scripts/setup.sh format
	@python3 test/house/format.py --fix

fuzz:
	@scripts/setup.sh build fuzz
	cmake --preset fuzz
	cmake --build --preset fuzz -j $(JOBS)
	@scripts/fuzz.sh

train:
	@scripts/setup.sh train
	.venv/bin/python examples/digits/train.py

clean:
	rm -rf build

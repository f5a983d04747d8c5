# SPDX-License-Identifier: Apache-2.0
# Each target installs what is missing (scripts/packages.txt), configures and builds; CMake and Ninja do the work.
# `make help` prints the targets with the text behind their ##.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
export JOBS
# What a build has done, what is left, and the seconds so far.
export NINJA_STATUS = [%f of %t, %u left, %es] 

# What these targets need, and no more.
DEMO_TARGETS := trtexec digits
PEERS_TARGETS := engine_worker fma_peak bench_gemm

# `make` alone builds.
.DEFAULT_GOAL := build
.PHONY: help build demo python test test-all bench bench-peers format fuzz train clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo "JOBS=N: so many processes ($(JOBS))"

build: ## everything, into build/release/{bin,lib}; what `make` alone does
	@scripts/setup.sh build
	cmake --preset release
	cmake --build --preset release -j $(JOBS)

demo: ## reads handwritten digits with trtexec and a client program
	@scripts/setup.sh build
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target $(DEMO_TARGETS)
	@scripts/demo.sh

test: ## what every change must pass
test-all: ## the same with the long tests, clang-tidy and the sanitizers
test test-all:
	@scripts/setup.sh build test $(if $(filter test-all,$@),fuzz)
	@scripts/setup.sh python || echo "setup: the Python module is left out; its tests count as skipped" >&2
	cmake --preset release
	cmake --build --preset release -j $(JOBS)
	@$(if $(filter test,$@),scripts/test.sh -LE '^long$$',status=0; scripts/test.sh || status=1; scripts/sanitize.sh || status=1; exit $$status)

bench: ## benchmarks
	@scripts/setup.sh build
	cmake --preset release
	cmake --build --preset release -j $(JOBS)
	@scripts/bench.sh

bench-peers: ## this engine beside ONNX Runtime and OpenVINO; PEERS_ARGS="--models resnet18 --rounds 5" and the like
	@scripts/setup.sh build peers
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target $(PEERS_TARGETS)
	.venv/bin/python bench/cpu_peers.py $(PEERS_ARGS)

format: ## clang-format on every source file
	@scripts/setup.sh format
	@python3 test/house/format.py --fix

fuzz: ## each fuzz target for FUZZ_SECONDS (600)
	@scripts/setup.sh build fuzz
	cmake --preset fuzz
	cmake --build --preset fuzz -j $(JOBS)
	@scripts/fuzz.sh

train: ## trains the demo's model again
	@scripts/setup.sh train
	.venv/bin/python examples/digits/train.py

python: ## the Python module alone, into build/release/python
	@scripts/setup.sh build python
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target tensorrt_module

clean: ## removes build/
	rm -rf build

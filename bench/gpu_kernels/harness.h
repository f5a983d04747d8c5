// SPDX-License-Identifier: Apache-2.0
// Runs the generated GPU kernels on random data, checks them against sums in double on the CPU, times them in a CUDA
// graph over rotating buffers. Kernels come from a folder of cubins that `--compile` filled, so a GPU machine needs a
// driver only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/cuda/compiler.h"
#include "device/cuda/device.h"
#include "kernels/cuda/common/tensor_map.h"

namespace bench {

using namespace tw;

// What a case wants of the machine, GPU or not: each kernel is made under its source's hash.
struct Kernel
{
    std::string label, source, entry;
};

struct Row
{
    std::string label;
    double us = 0, teraflops = 0, gigabytes = 0, libraryUs = 0, error = 0;
    bool checked = false, failed = false;
};

// Numbers in [-1, 1) from a seed, the same on every machine.
std::vector<uint16_t> randomHalves(size_t count, uint64_t seed, float scale);
std::vector<float> randomFloats(size_t count, uint64_t seed, float scale);
float halfToFloat(uint16_t bits);
uint16_t floatToHalf(float v);

class Gpu
{
public:
    static Result<std::unique_ptr<Gpu>> open(std::string folder);

    Result<CUfunc_st*> load(Kernel const& kernel, int64_t sharedBytes);
    // Device memory with these bytes, `copies` times in a row at multiples of 256; kept until clear().
    Result<uint64_t> upload(void const* data, size_t bytes, int copies);
    Result<uint64_t> poisoned(size_t bytes); // every byte 0xff: NaN
    Result<void> download(void* to, uint64_t from, size_t bytes);
    void clear();

    Result<void> encode(cuda::TensorMap& map, cuda::TensorMapSpec const& spec, uint64_t address);
    Result<void> launch(CUfunc_st* function, cuda::LaunchGeometry const& geometry, void** parameters, bool dependent);
    Result<void> finish();
    // Microseconds of one of `count` launches in a graph: the median of several replays. enqueue(i) launches the i-th.
    Result<double> time(int count, std::function<Result<void>(int)> const& enqueue);
    int multiprocessors() const { return device_->info().multiprocessors; }
    std::string name() const { return device_->info().name; }

private:
    std::shared_ptr<cuda::Driver const> driver_;
    std::shared_ptr<cuda::Device const> device_;
    std::unique_ptr<cuda::Current> current_;
    std::unique_ptr<cuda::Stream> stream_;
    std::unique_ptr<cuda::Timer> timer_;
    std::vector<std::shared_ptr<cuda::Module const>> modules_;
    std::vector<cuda::Buffer> buffers_;
    std::string folder_;
};

inline int64_t strideOf(size_t bytes) // between copies
{
    return int64_t((bytes + 255) / 256 * 256);
}

// Compares y with a reference at some places; fills error, checked, failed.
struct Expected
{
    size_t at;
    double value;
};
void compare(Row& row, std::vector<uint16_t> const& y, std::vector<Expected> const& expected, double slack = 1);

// One case: its kernels, and its run.
struct Case
{
    std::string label;
    std::vector<Kernel> kernels;
    std::function<Result<Row>(Gpu&)> run;
};
void gemmCases(std::vector<Case>& cases);
void gemmInt8Cases(std::vector<Case>& cases);
void attentionCases(std::vector<Case>& cases);
void stemCases(std::vector<Case>& cases);
void convCases(std::vector<Case>& cases);
void sparseCases(std::vector<Case>& cases);

std::string fileOf(std::string const& folder, std::string const& source);

} // namespace bench

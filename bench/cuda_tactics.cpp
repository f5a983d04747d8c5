// SPDX-License-Identifier: Apache-2.0
// usage: bench_cuda_tactics [--filter TEXT] [--tactic TACTIC] [--without TACTIC] [--config NUMBERS] [--json FILE]
// Every CUDA tactic (those whose name holds one TACTIC and not the other; one config, such as 4,2), on problems of real
// networks' sizes: microseconds by events, and operations a second or the share of the GPU's copy bandwidth (read and
// write of the same bytes, the bandwidth measured here on 1 GiB). After that a plain copy of the row's own bytes,
// timed as the tactics are ("copy_us" in the JSON): a short one does not reach the bandwidth of a long one either.
// Status 77: there is no GPU.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "cuda_row.h"
#include "device/cuda/device.h"
#include "device/cuda/target.h"
#include "interp/interp.h"
#include "support/cuda_libraries.h"
#include "tactic/convert_format.h"
#include "tactic/registry.h"
#include "tune/device_run.h"

namespace {

using namespace tw;

using bench::Row;

std::vector<Row> rows()
{
    std::vector<Row> list;
    for (auto const family : {bench::elementRows, bench::movingRows, bench::productRows})
        for (Row& row : family())
            list.push_back(std::move(row));
    return list;
}

Result<double> medianTime(ops::Problem const& problem, ops::Kernel const& kernel,
                          std::shared_ptr<tune::DeviceTensors> const& tensors)
{
    TW_ASSIGN(auto run, tune::DeviceRun::create(problem, kernel, tensors));
    std::vector<double> us;
    for (int i = 0; i < 5; ++i) {
        TW_ASSIGN(double const one, run->microseconds());
        us.push_back(one);
    }
    std::nth_element(us.begin(), us.begin() + 2, us.end());
    return us[2];
}

// Copies of GPU memory, for what kernels are compared with.
class Copies : public ops::Kernel
{
public:
    static constexpr int64_t kMostBytes = int64_t(1) << 30, kUnitBytes = 64 << 10;

    Result<void> allocate(std::shared_ptr<cuda::Device const> const& device)
    {
        device_ = device;
        TW_ASSIGN(from_, cuda::Buffer::allocate(device, kMostBytes));
        TW_ASSIGN(to_, cuda::Buffer::allocate(device, kMostBytes));
        std::vector<uint32_t> noise(1 << 20);
        for (uint32_t v = 12345; uint32_t & one : noise)
            one = v = v * 1103515245 + 12345;
        int64_t const part = int64_t(noise.size() * sizeof(uint32_t));
        cuda::Driver const& driver = device->driver();
        cuda::Current const current(*device);
        TW_TRY(cuda::upload(driver, from_.data(), noise.data(), size_t(part)));
        uint64_t const from = cuda::addressOf(from_.data());
        for (int64_t at = part; at < kMostBytes; at += part)
            TW_CUDA(driver, cuMemcpyDtoDAsync(from + uint64_t(at), from, size_t(part), nullptr));
        return {};
    }
    // Bytes a second that long copies move, read and written.
    Result<double> rate()
    {
        constexpr int kRuns = 10;
        TW_ASSIGN(auto timer, cuda::Timer::create(device_));
        cuda::Current const current(*device_);
        double best = 1e30;
        for (int r = 0; r < 4; ++r) {
            TW_TRY(timer->begin(nullptr));
            for (int i = 0; i < kRuns; ++i)
                TW_TRY(copy(kMostBytes, nullptr));
            TW_TRY(timer->end(nullptr));
            TW_ASSIGN(double const ms, timer->milliseconds());
            best = std::min(best, ms / kRuns);
        }
        return 2.0 * double(kMostBytes) / (best * 1e-3);
    }
    // A copy that reads and writes `bytes` together.
    Result<double> microseconds(cuda::Target const& target, double bytes)
    {
        bytes_ = int64_t(bytes / 2) / kUnitBytes * kUnitBytes; // copies of odd sizes take half as long again
        if (bytes_ > kMostBytes)
            return unsupported("a copy is of at most 1 GiB");
        ops::Problem problem;
        problem.target.cuda = &target;
        TW_ASSIGN(auto const tensors, tune::DeviceTensors::create(problem, {}, {}));
        return medianTime(problem, *this, tensors);
    }
    Result<void> run(ops::RunArgs& args) const override { return copy(bytes_, args.stream); }

private:
    Result<void> copy(int64_t bytes, void* stream) const
    {
        TW_CUDA(device_->driver(), cuMemcpyDtoDAsync(cuda::addressOf(to_.data()), cuda::addressOf(from_.data()),
                                                     size_t(bytes), static_cast<CUstream_st*>(stream)));
        return {};
    }

    std::shared_ptr<cuda::Device const> device_;
    cuda::Buffer from_, to_;
    int64_t bytes_ = 0;
};

// Other formats are for networks' inputs and outputs.
bool isTimed(Format f)
{
    return f == Format::kLinear || f == Format::kHWC8 || f == Format::kDHWC8;
}

std::string textOf(ops::Config const& config)
{
    std::string text;
    for (int64_t number : config)
        text += (text.empty() ? "" : ",") + std::to_string(number);
    return text;
}

std::string fixed(double v)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", v);
    return text;
}

int skip(Error const& e)
{
    std::printf("skipped: %s\n", e.message.c_str());
    return 77;
}

} // namespace

int main(int argc, char** argv)
{
    std::string filter, only, without, json, chosen;
    for (int i = 1; i + 1 < argc; ++i) {
        if (!std::strcmp(argv[i], "--filter"))
            filter = argv[++i];
        else if (!std::strcmp(argv[i], "--tactic"))
            only = argv[++i];
        else if (!std::strcmp(argv[i], "--without"))
            without = argv[++i];
        else if (!std::strcmp(argv[i], "--config"))
            chosen = argv[++i];
        else if (!std::strcmp(argv[i], "--json"))
            json = argv[++i];
    }
    auto driver = cuda::Driver::open();
    if (!driver.ok())
        return skip(driver.error());
    auto device = cuda::Device::open(*driver, 0);
    if (!device.ok())
        return skip(device.error());
    cuda::Target const target =
        cuda::Target::of(*device, std::make_shared<cuda::LazyCompiler>(test::testSearchPath()), test::testLibraries());
    Copies copies;
    if (auto ready = copies.allocate(*device); !ready.ok())
        return skip(ready.error());
    auto rate = copies.rate();
    if (!rate.ok())
        return skip(rate.error());
    std::printf("%s: copy %.2f TB/s\n", (*device)->info().fingerprint().c_str(), *rate * 1e-12);
    std::string rowsText;
    int failures = 0;
    for (Row const& row : rows()) {
        if (row.name.find(filter) == std::string::npos)
            continue;
        ir::Graph g;
        std::vector<ir::Value*> values;
        std::vector<Tensor> storage;
        std::vector<TensorRef> inputs;
        for (auto const& [type, dims] : row.inputs) {
            storage.emplace_back(type, dims);
            TensorRef const& t = storage.back().ref();
            // Cheap noise; indices stay small. Pages are all blocks, in another order: by a prime.
            bool const isPages = type == DataType::kInt32 && row.name.ends_with("_pages") && dims.rank == 2;
            for (int64_t i = 0, v = 12345; i < t.count(); ++i, v = v * 1103515245 + 12345)
                if (isPages)
                    t.as<int32_t>()[i] = int32_t(i * 7919 % t.count());
                else if (type == DataType::kInt32)
                    t.as<int32_t>()[i] = int32_t((v >> 8 & 0xffffff) % 30000);
                else if (sizeOf(type) == 1)
                    t.as<uint8_t>()[i] = uint8_t(v >> 16 & 1);
                else if (type == DataType::kFloat)
                    t.as<float>()[i] = float(v >> 8 & 0xffff) / 65536.0F - 0.5F;
                else
                    t.as<uint16_t>()[i] = uint16_t(0x3000 | (v >> 8 & 0x8fff)); // sizes from 1/8 to 2
            inputs.push_back(t);
            bool const constant = inputs.size() + row.constants + row.behind > row.inputs.size() &&
                                  inputs.size() + row.behind <= row.inputs.size();
            values.push_back(constant ? g.addConstant("w", type, dims, t.data)
                                      : g.addInput("x", type, ir::shapeOf(dims)));
        }
        auto node = g.addNode(row.op, row.attrs->clone(), values, row.name);
        if (!node.ok()) {
            std::printf("FAILED %s: %s\n", row.name.c_str(), node.error().message.c_str());
            ++failures;
            continue;
        }
        ops::Problem problem;
        problem.node = *node;
        problem.target.cuda = &target;
        double bytes = 0;
        for (TensorRef const& t : inputs) {
            ops::TensorSpec spec;
            spec.type = t.type;
            spec.dims = spec.maxDims = t.dims;
            spec.present = true;
            ir::Value const& v = *values[problem.inputs.size()];
            spec.constant = v.isConstant() ? v.constant->data.get() : nullptr;
            problem.inputs.push_back(spec);
            bytes += double(t.sizeBytes());
        }
        std::vector<TensorRef> outputs;
        for (ir::Value const* v : (*node)->outputs) {
            storage.emplace_back(v->type, ir::extentsOf(v->shape));
            outputs.push_back(storage.back().ref());
            ops::TensorSpec spec;
            spec.type = v->type;
            spec.dims = spec.maxDims = outputs.back().dims;
            spec.present = true;
            problem.outputs.push_back(spec);
            bytes += double(outputs.back().sizeBytes());
        }
        if (row.bytes > 0)
            bytes = row.bytes;
        else if (std::strcmp(row.op.name, "gather") == 0) // only the rows that are taken
            bytes = 2 * double(outputs[0].sizeBytes());
        std::vector<std::pair<ops::Tactic const*, ops::Formats>> ways;
        for (ops::Tactic const* t : *row.op.cudaTactics)
            for (ops::Formats const& f : t->formats(problem))
                if (std::all_of(f.inputs.begin(), f.inputs.end(), isTimed) &&
                    std::all_of(f.outputs.begin(), f.outputs.end(), isTimed))
                    ways.emplace_back(t, f);
        std::optional<Result<double>> copied; // once something is timed
        for (auto const& [t, formats] : ways) {
            ops::setFormats(problem, formats);
            if (!t->supports(problem).ok || !std::strstr(t->name(), only.c_str()) ||
                (!without.empty() && std::strstr(t->name(), without.c_str())))
                continue;
            std::vector<Tensor> formatted;
            std::vector<TensorRef> in, out;
            auto put = [&](std::vector<TensorRef>& list, TensorRef const& t, Format format) {
                list.push_back(t);
                if (format == t.format)
                    return;
                formatted.emplace_back(t.type, t.dims, format);
                list.back() = formatted.back().ref();
                ops::convertFormat(t, list.back());
            };
            for (size_t i = 0; i < inputs.size(); ++i)
                put(in, inputs[i], formats.inputs[i]);
            for (size_t i = 0; i < outputs.size(); ++i)
                put(out, outputs[i], formats.outputs[i]);
            // Compiled side by side, timed one after the other.
            std::vector<ops::Config> configs = t->configs(problem);
            if (!chosen.empty())
                std::erase_if(configs, [&](ops::Config const& c) { return textOf(c) != chosen; });
            std::vector<std::optional<Result<std::string>>> images(configs.size());
            std::atomic<size_t> next = 0;
            auto compile = [&] {
                for (size_t c = next++; c < configs.size(); c = next++)
                    images[c].emplace(t->build(problem, configs[c]));
            };
            std::vector<std::thread> threads;
            for (unsigned i = 1; i < std::min<size_t>(std::thread::hardware_concurrency(), configs.size()); ++i)
                threads.emplace_back(compile);
            compile();
            for (std::thread& thread : threads)
                thread.join();
            for (size_t c = 0; c < configs.size(); ++c) {
                ops::Config const& config = configs[c];
                auto measure = [&]() -> Result<double> {
                    TW_ASSIGN(auto const tensors, tune::DeviceTensors::create(problem, in, out));
                    TW_ASSIGN(std::string const image, std::move(*images[c]));
                    TW_ASSIGN(auto kernel, t->load(problem, config, image));
                    return medianTime(problem, *kernel, tensors);
                };
                auto us = measure();
                if (!us.ok()) {
                    std::printf("FAILED %s, %s: %s\n", row.name.c_str(), t->name(), us.error().message.c_str());
                    ++failures;
                    continue;
                }
                bool const counts = row.operations > 0;
                if (!counts && !copied)
                    copied.emplace(copies.microseconds(target, bytes));
                double const share = (counts ? row.operations * 1e-12 : bytes / *rate * 100) / (*us * 1e-6),
                             copy = !counts && copied->ok() ? **copied : 0;
                std::string const numbers = textOf(config),
                                  of = counts ? "TFLOP/s" : "% of copy, its own " + fixed(copy) + " us";
                std::printf("%-22s %-32s %-34s %9.2f us %8.1f %s\n", row.name.c_str(), t->name(),
                            (numbers + " " + nameOf(formats.inputs[0]) + ">" + nameOf(formats.outputs[0])).c_str(), *us,
                            share, of.c_str());
                std::fflush(stdout);
                rowsText += std::string(rowsText.empty() ? "" : ",") + "\n  {\"row\": \"" + row.name.c_str() +
                            "\", \"tactic\": \"" + t->name() + "\", \"formats\": \"" + nameOf(formats.inputs[0]) + ">" +
                            nameOf(formats.outputs[0]) + "\", \"config\": [" + numbers +
                            "], \"us\": " + std::to_string(*us) +
                            ", \"estimate_us\": " + std::to_string(t->estimate(problem, config)) + ", \"" +
                            (counts ? "tflops" : "percent_of_copy") + "\": " + std::to_string(share) +
                            (counts ? "" : ", \"copy_us\": " + std::to_string(copy)) + "}";
            }
        }
        if (copied && !copied->ok()) {
            std::printf("FAILED %s: %s\n", row.name.c_str(), copied->error().message.c_str());
            ++failures;
        }
    }
    if (!json.empty())
        if (std::FILE* file = std::fopen(json.c_str(), "w")) {
            std::fprintf(file, "{\"gpu\": \"%s\", \"copy_tb_s\": %f, \"rows\": [%s\n]}\n",
                         (*device)->info().fingerprint().c_str(), *rate * 1e-12, rowsText.c_str());
            std::fclose(file);
        }
    return failures ? 1 : 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include <dlfcn.h>

#include "kernels/cuda/common/launch.h"
#include "kernels/cuda/common/source.h"

namespace bench {

namespace {

uint64_t hashOf(std::string const& text)
{
    uint64_t h = 1469598103934665603ull; // FNV-1a
    for (unsigned char c : text)
        h = (h ^ c) * 1099511628211ull;
    return h;
}

// Graph functions of the driver, which the product opens elsewhere.
struct Graphs
{
    int (*begin)(CUstream_st*, int) = nullptr;
    int (*end)(CUstream_st*, void**) = nullptr;
    int (*instantiate)(void**, void*, unsigned long long) = nullptr;
    int (*launch)(void*, CUstream_st*) = nullptr;
    int (*destroyExec)(void*) = nullptr;
    int (*destroy)(void*) = nullptr;
};
Graphs const& graphs()
{
    static Graphs const g = [] {
        Graphs v;
        void* const lib = dlopen("libcuda.so.1", RTLD_NOW);
        auto get = [&](auto& f, char const* name) {
            f = reinterpret_cast<std::decay_t<decltype(f)>>(dlsym(lib, name));
        };
        if (lib) {
            get(v.begin, "cuStreamBeginCapture_v2");
            get(v.end, "cuStreamEndCapture");
            get(v.instantiate, "cuGraphInstantiateWithFlags");
            get(v.launch, "cuGraphLaunch");
            get(v.destroyExec, "cuGraphExecDestroy");
            get(v.destroy, "cuGraphDestroy");
        }
        return v;
    }();
    return g;
}

} // namespace

std::string fileOf(std::string const& folder, std::string const& source)
{
    char name[32];
    std::snprintf(name, sizeof(name), "/%016llx.cubin", (unsigned long long)hashOf(cuda::withIncludes(source)));
    return folder + name;
}

float halfToFloat(uint16_t bits)
{
    _Float16 h;
    std::memcpy(&h, &bits, 2);
    return float(h);
}
uint16_t floatToHalf(float v)
{
    _Float16 const h = _Float16(v);
    uint16_t bits;
    std::memcpy(&bits, &h, 2);
    return bits;
}

std::vector<float> randomFloats(size_t count, uint64_t seed, float scale)
{
    std::vector<float> v(count);
    uint64_t s = seed * 0x9E3779B97F4A7C15ull + 1;
    for (float& x : v) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        x = float(int32_t(s >> 32)) * (scale / 2147483648.0f);
    }
    return v;
}
std::vector<uint16_t> randomHalves(size_t count, uint64_t seed, float scale)
{
    std::vector<uint16_t> v(count);
    uint64_t s = seed * 0x9E3779B97F4A7C15ull + 1;
    for (uint16_t& x : v) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        x = floatToHalf(float(int32_t(s >> 32)) * (scale / 2147483648.0f));
    }
    return v;
}

void compare(Row& row, std::vector<uint16_t> const& y, std::vector<Expected> const& expected, double slack)
{
    double sum = 0, difference = 0, worst = 0;
    for (Expected const& e : expected)
        sum += e.value * e.value;
    double const rms = std::sqrt(sum / double(expected.size()));
    size_t worstAt = 0;
    for (Expected const& e : expected) {
        double const d = std::fabs(halfToFloat(y[e.at]) - e.value),
                     limit = slack * (2e-3 * std::fabs(e.value) + 2e-3 * rms);
        difference += d * d;
        if (!(d / limit <= worst)) {
            worst = d == d ? d / limit : 1e30;
            worstAt = e.at;
        }
    }
    size_t unwritten = 0;
    for (uint16_t v : y)
        unwritten += v == 0xffff;
    row.error = std::sqrt(difference / sum);
    row.checked = true;
    row.failed = !(row.error < 1e-3 * slack) || worst > 1 || unwritten != 0;
    if (row.failed)
        std::printf("FAILED %s: error %.2e, worst %.2f of the limit at element %zu (%g), %zu of %zu unwritten\n",
                    row.label.c_str(), row.error, worst, worstAt, halfToFloat(y[worstAt]), unwritten, y.size());
}

Result<std::unique_ptr<Gpu>> Gpu::open(std::string folder)
{
    std::unique_ptr<Gpu> g(new Gpu);
    TW_ASSIGN(g->driver_, cuda::Driver::open());
    TW_ASSIGN(g->device_, cuda::Device::open(g->driver_, 0));
    g->current_ = std::make_unique<cuda::Current>(*g->device_);
    TW_ASSIGN(g->stream_, cuda::Stream::create(g->device_));
    TW_ASSIGN(g->timer_, cuda::Timer::create(g->device_));
    g->folder_ = std::move(folder);
    return g;
}

Result<CUfunc_st*> Gpu::load(Kernel const& kernel, int64_t sharedBytes)
{
    std::string const file = fileOf(folder_, kernel.source);
    std::ifstream in(file, std::ios::binary);
    std::stringstream bytes;
    bytes << in.rdbuf();
    if (!in)
        return Error{ErrorCode::kInvalidArgument, "no file " + file + " for " + kernel.label + ": run --compile first"};
    TW_ASSIGN(auto module, cuda::Module::load(device_, bytes.str()));
    modules_.push_back(module);
    return module->function(kernel.entry.c_str(), sharedBytes);
}

Result<uint64_t> Gpu::upload(void const* data, size_t bytes, int copies)
{
    int64_t const stride = strideOf(bytes);
    TW_ASSIGN(auto buffer, cuda::Buffer::allocate(device_, stride * copies));
    uint64_t const at = cuda::addressOf(buffer.data());
    TW_CUDA(*driver_, cuMemcpyHtoD(at, data, bytes));
    for (int i = 1; i < copies; ++i)
        TW_CUDA(*driver_, cuMemcpyDtoDAsync(at + uint64_t(i * stride), at, bytes, stream_->handle()));
    buffers_.push_back(std::move(buffer));
    return at;
}

Result<uint64_t> Gpu::poisoned(size_t bytes)
{
    TW_ASSIGN(auto buffer, cuda::Buffer::allocate(device_, int64_t(bytes)));
    uint64_t const at = cuda::addressOf(buffer.data());
    TW_CUDA(*driver_, cuMemsetD8Async(at, 0xff, bytes, stream_->handle()));
    buffers_.push_back(std::move(buffer));
    return at;
}

Result<void> Gpu::download(void* to, uint64_t from, size_t bytes)
{
    TW_CUDA(*driver_, cuMemcpyDtoHAsync(to, from, bytes, stream_->handle()));
    return stream_->synchronize();
}

void Gpu::clear()
{
    buffers_.clear();
    modules_.clear();
}

Result<void> Gpu::encode(cuda::TensorMap& map, cuda::TensorMapSpec const& spec, uint64_t address)
{
    TW_ASSIGN(map, cuda::encodeMap(*driver_, spec, reinterpret_cast<void const*>(address)));
    return {};
}

Result<void> Gpu::launch(CUfunc_st* function, cuda::LaunchGeometry const& g, void** parameters, bool dependent)
{
    return cuda::launchKernel(*driver_, function, g, parameters, dependent, stream_->handle());
}

Result<void> Gpu::finish()
{
    return stream_->synchronize();
}

Result<double> Gpu::time(int count, std::function<Result<void>(int)> const& enqueue)
{
    Graphs const& g = graphs();
    CUstream_st* const stream = stream_->handle();
    TW_TRY(driver_->check(g.begin(stream, 2), "cuStreamBeginCapture")); // relaxed
    for (int i = 0; i < count; ++i)
        TW_TRY(enqueue(i));
    void *graph = nullptr, *exec = nullptr;
    TW_TRY(driver_->check(g.end(stream, &graph), "cuStreamEndCapture"));
    TW_TRY(driver_->check(g.instantiate(&exec, graph, 0), "cuGraphInstantiate"));
    std::vector<double> times;
    for (int i = 0; i < 9; ++i) {
        TW_TRY(timer_->begin(stream));
        TW_TRY(driver_->check(g.launch(exec, stream), "cuGraphLaunch"));
        TW_TRY(timer_->end(stream));
        TW_ASSIGN(double const ms, timer_->milliseconds());
        if (i >= 2)
            times.push_back(ms * 1000 / count);
    }
    g.destroyExec(exec);
    g.destroy(graph);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

} // namespace bench

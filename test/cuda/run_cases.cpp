// SPDX-License-Identifier: Apache-2.0
// usage: test_cuda_cases [--filter TEXT] [--tactic TEXT] [--share I/N] [--device N] [--threads N] [--json FILE]
// Every op case (or, of N shares of them, the one numbered I from 0) by every CUDA tactic on a GPU, against the
// reference: once at aligned addresses, once one element further, and channels-last tensors once as parts of wider
// ones, with guard bytes round every output. Exit status 77, with the reason: there is no driver, GPU or NVRTC.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "cuda_cases.h"
#include "device/cuda/target.h"
#include "families/elementwise/epilogue.h"
#include "tactic/convert_format.h"
#include "tactic/cuda_library.h"
#include "tactic/parts.h"

namespace {

using namespace tw;

constexpr int64_t kGuard = 256;
constexpr double kSlack = 4; // as in the builder's check
constexpr unsigned char kPattern = 0xa5;

struct Job
{
    test::CudaCase const* of = nullptr;
    ops::Tactic const* tactic = nullptr;
    ops::Config config;
    ops::Problem problem;
    std::string image, error;
};

// Device memory with a guard on both sides, `shift` bytes after an aligned address; filled with the guards' pattern.
class Guarded
{
public:
    Result<void> allocate(std::shared_ptr<cuda::Device const> device, int64_t bytes, int64_t shift)
    {
        bytes_ = bytes;
        shift_ = shift;
        TW_ASSIGN(memory_, cuda::Buffer::allocate(device, bytes + shift + 2 * kGuard));
        TW_CUDA(device->driver(),
                cuMemsetD8Async(cuda::addressOf(memory_.data()), kPattern, size_t(memory_.sizeBytes()), nullptr));
        return {};
    }
    void* data() const { return static_cast<std::byte*>(memory_.data()) + kGuard + shift_; }
    // All bytes, guards included.
    Result<std::vector<unsigned char>> read(cuda::Device const& device) const
    {
        std::vector<unsigned char> all(size_t(memory_.sizeBytes()));
        TW_CUDA(device.driver(), cuMemcpyDtoHAsync(all.data(), cuda::addressOf(memory_.data()), all.size(), nullptr));
        TW_CUDA(device.driver(), cuStreamSynchronize(nullptr));
        return all;
    }
    bool intact(std::vector<unsigned char> const& all) const
    {
        for (size_t i = 0; i < all.size(); ++i)
            if ((int64_t(i) < kGuard + shift_ || int64_t(i) >= kGuard + shift_ + bytes_) && all[i] != kPattern)
                return false;
        return true;
    }
    unsigned char const* contents(std::vector<unsigned char> const& all) const { return all.data() + kGuard + shift_; }

private:
    cuda::Buffer memory_;
    int64_t bytes_ = 0, shift_ = 0;
};

enum class Placing
{
    kAligned,
    kShifted,
    kParts, // of wider tensors, as joins without copies make them: other channels stand before and after
};
constexpr char const* kPlacingNames[] = {"", "(shifted addresses) ", "(parts of wider tensors) "};

// Whether the channels of `whole` that are not t's still hold the pattern.
bool isIntactRound(TensorRef const& whole, TensorRef const& t)
{
    int64_t const size = sizeOf(t.type), step = whole.pixelStride() * size, first = ops::neighbours(t) * size,
                  last = first + t.dims[1] * size;
    for (int64_t i = 0; i < whole.sizeBytes(); ++i)
        if ((i % step < first || i % step >= last) && whole.as<unsigned char>()[i] != kPattern)
            return false;
    return true;
}

// Empty when right, else what is wrong.
Result<std::string> runJob(Job const& job, std::shared_ptr<cuda::Device const> const& device, Placing placing)
{
    test::CudaCase const& c = *job.of;
    cuda::Current const current(*device);
    TW_ASSIGN(auto kernel, job.tactic->load(job.problem, job.config, job.image));
    std::vector<std::unique_ptr<Guarded>> memory;
    std::vector<TensorRef> inputs, outputs;
    std::vector<Tensor> copies;
    TW_ASSIGN(auto hostInputs, test::inFormats(c.graph->nodeInputs, job.problem.inputs, copies));
    // Linear tensors may begin at any element; pixels of others begin on cache lines.
    auto shiftOf = [&](TensorRef const& t) {
        return placing == Placing::kShifted && t.format == Format::kLinear
                   ? std::max(sizeOf(t.type), kernel->alignment())
                   : 0;
    };
    for (size_t i = 0; i < hostInputs.size(); ++i) {
        TensorRef t = hostInputs[i];
        if (t.data && placing == Placing::kParts && ops::canBePart(t) && !job.problem.inputs[i].constant) {
            Tensor whole(t.type, ops::widened(t).dims, t.format);
            std::memset(whole.data(), 0xff, size_t(whole.ref().sizeBytes())); // NaN
            ops::convertFormat(t, ops::partOf(whole.ref(), t));
            memory.push_back(std::make_unique<Guarded>());
            TW_TRY(memory.back()->allocate(device, whole.ref().sizeBytes(), 0));
            TW_CUDA(device->driver(), cuMemcpyHtoD(cuda::addressOf(memory.back()->data()), whole.data(),
                                                   size_t(whole.ref().sizeBytes())));
            TensorRef onDevice = whole.ref();
            onDevice.data = memory.back()->data();
            t = ops::partOf(onDevice, t);
        } else if (t.data && !ir::isShapeInput(*c.graph->node, i)) {
            memory.push_back(std::make_unique<Guarded>());
            TW_TRY(memory.back()->allocate(device, t.sizeBytes(), shiftOf(t)));
            TW_CUDA(device->driver(),
                    cuMemcpyHtoD(cuda::addressOf(memory.back()->data()), t.data, size_t(t.sizeBytes())));
            t.data = memory.back()->data();
        }
        inputs.push_back(t);
    }
    TW_ASSIGN(auto shapes, interp::inferConcrete(*c.graph->node, c.graph->nodeInputs));
    size_t const firstOutput = memory.size();
    for (size_t i = 0; i < shapes.size(); ++i) {
        TensorRef t{shapes[i].type, shapes[i].dims, nullptr, job.problem.outputs[i].format};
        bool const isPart = placing == Placing::kParts && ops::canBePart(t);
        TensorRef whole = isPart ? ops::widened(t) : t;
        memory.push_back(std::make_unique<Guarded>());
        TW_TRY(memory.back()->allocate(device, whole.sizeBytes(), shiftOf(t)));
        whole.data = memory.back()->data();
        outputs.push_back(isPart ? ops::partOf(whole, t) : whole);
    }
    Guarded workspace;
    TW_TRY(workspace.allocate(device, kernel->workspaceBytes(inputs, outputs), 0));
    TW_ASSIGN(auto prepared, kernel->prepare(inputs, outputs));
    uint64_t randomState = 1;
    ops::RunArgs args{inputs, outputs, workspace.data(), &randomState};
    args.prepared = prepared.get();
    TW_TRY(kernel->run(args)); // on the null stream
    TW_CUDA(device->driver(), cuStreamSynchronize(nullptr));
    TW_ASSIGN(auto scratch, workspace.read(*device));
    if (!workspace.intact(scratch))
        return std::string("it wrote outside its workspace");
    for (size_t i = 0; i < outputs.size(); ++i) {
        Guarded const& m = *memory[firstOutput + i];
        TW_ASSIGN(auto all, m.read(*device));
        if (!m.intact(all))
            return "it wrote outside output " + std::to_string(i);
        TensorRef plain = outputs[i];
        plain.stride = 0;
        bool const isPart = outputs[i].stride > 0;
        Tensor stored(plain.type, (isPart ? ops::widened(plain) : plain).dims, plain.format),
            got(plain.type, plain.dims);
        std::memcpy(stored.data(), m.contents(all), size_t(stored.ref().sizeBytes()));
        if (isPart && !isIntactRound(stored.ref(), plain))
            return "it wrote to channels round output " + std::to_string(i);
        ops::convertFormat(isPart ? ops::partOf(stored.ref(), plain) : stored.ref(), got.ref());
        ops::Tolerance tolerance = test::toleranceOf(*c.graph->node, outputs[i].type);
        if (job.tactic->traits().rounding == ops::Rounding::kTf32) {
            // Of sums that may be several times larger than what an activation leaves of them.
            tolerance = tolerance.forTf32();
            tolerance.absolute *= kSlack;
        }
        std::string const why = test::compare(got.ref(), c.want[i].ref(), tolerance);
        if (!why.empty())
            return "output " + std::to_string(i) + ", " + why;
    }
    return std::string();
}

int skip(Error const& e)
{
    std::printf("skipped: %s\n", e.message.c_str());
    return 77;
}

struct Count
{
    int passed = 0, failed = 0;
};

} // namespace

int main(int argc, char** argv)
{
    std::string filter, tactic, json;
    int ordinal = 0, threads = int(std::thread::hardware_concurrency()), share = 0, shares = 1;
    for (int i = 1; i < argc; ++i) {
        auto next = [&] { return i + 1 < argc ? argv[++i] : ""; };
        if (!std::strcmp(argv[i], "--filter"))
            filter = next();
        else if (!std::strcmp(argv[i], "--tactic"))
            tactic = next();
        else if (!std::strcmp(argv[i], "--device"))
            ordinal = std::atoi(next());
        else if (!std::strcmp(argv[i], "--threads"))
            threads = std::atoi(next());
        else if (!std::strcmp(argv[i], "--json"))
            json = next();
        else if (!std::strcmp(argv[i], "--share") &&
                 (std::sscanf(next(), "%d/%d", &share, &shares) != 2 || share < 0 || share >= shares)) {
            std::fprintf(stderr, "--share takes I/N with 0 <= I < N, as in --share 0/2\n");
            return 2;
        }
    }
    auto driver = cuda::Driver::open();
    if (!driver.ok())
        return skip(driver.error());
    auto device = cuda::Device::open(*driver, ordinal);
    if (!device.ok())
        return skip(device.error());
    auto const lazy = std::make_shared<cuda::LazyCompiler>(test::testSearchPath());
    auto compiler = lazy->get();
    if (!compiler.ok())
        return skip(compiler.error());
    cuda::Target const target = cuda::Target::of(*device, lazy, test::testLibraries());
    std::printf("%s, driver for CUDA %d, NVRTC %d, kernels for %s\n", (*device)->info().fingerprint().c_str(),
                (*driver)->version(), (*compiler)->version(), target.architecture.c_str());

    for (ops::Source source : {ops::Source::kCublasLt, ops::Source::kCudnn})
        if (auto there = ops::openLibrary(source, target); !there.ok())
            std::printf("not run: kernels of %s: %s\n", ops::nameOf(source), there.error().message.c_str());

    int failures = 0, refused = 0;
    std::vector<test::CudaCase> const cases =
        test::cudaCases(filter, failures, test::Results::kReference,
                        [&](size_t number) { return int(number % size_t(shares)) == share; });
    std::vector<Job> jobs;
    for (test::CudaCase const& c : cases) {
        ops::Problem problem = c.problem;
        problem.target.cuda = &target;
        auto const tactics = *c.op->cudaTactics;
        for (ops::Tactic const* t : tactics)
            for (ops::Formats const& f : t->formats(problem)) {
                if (std::string(t->name()).find(tactic) == std::string::npos)
                    continue;
                ops::setFormats(problem, f);
                if (ops::Support const s = t->supports(problem); !s.ok) {
                    ++refused;
                    bool const isForNone = problem.inputs.size() > ops::Epilogue::kScale &&
                                           problem.inputs[0].type == DataType::kInt8; // has no CUDA kernels yet
                    if ((t == tactics.back() && !isForNone) || s.reason.empty()) {
                        std::printf("FAILED %s: %s refuses it (%s)\n", c.name.c_str(), t->name(), s.reason.c_str());
                        ++failures;
                    }
                    continue;
                }
                for (ops::Config const& config : t->configs(problem))
                    jobs.push_back({&c, t, config, problem, {}, {}});
            }
    }
    std::atomic<size_t> nextJob{0};
    std::vector<std::thread> pool;
    for (int i = 0; i < std::max(threads, 1); ++i)
        pool.emplace_back([&] {
            for (size_t j = nextJob++; j < jobs.size(); j = nextJob++) {
                auto image = jobs[j].tactic->build(jobs[j].problem, jobs[j].config);
                (image.ok() ? jobs[j].image : jobs[j].error) = image.ok() ? *image : image.error().message;
            }
        });
    for (std::thread& t : pool)
        t.join();
    std::printf("%zu cases, %zu runs of tactics, %zu sources compiled\n", cases.size(), jobs.size(),
                (*compiler)->compiledCount());

    std::map<std::string, Count> counts;
    bool alive = true;
    for (Job const& job : jobs) {
        std::string why = job.error;
        for (Placing placing : {Placing::kAligned, Placing::kShifted, Placing::kParts}) {
            if (!why.empty() || !alive || (placing == Placing::kParts && !ops::hasParts(job.problem)))
                break;
            auto ran = runJob(job, *device, placing);
            why = ran.ok() ? *ran : ran.error().message;
            if (!why.empty())
                why = kPlacingNames[int(placing)] + why;
            if (!ran.ok()) {
                cuda::Current const current(**device);
                alive = (*driver)->cuCtxSynchronize() == cuda::kSuccess; // else it is lost with what is in it
            }
        }
        Count& count = counts[job.tactic->name()];
        ++(why.empty() ? count.passed : count.failed);
        if (!why.empty()) {
            std::printf("FAILED %s, %s: %s\n", job.of->name.c_str(), job.tactic->name(), why.c_str());
            ++failures;
        }
        if (!alive) {
            std::printf("FAILED the GPU context is lost after %s; what follows was not run\n", job.of->name.c_str());
            break;
        }
    }
    std::string rows;
    for (auto const& [tactic, n] : counts) {
        std::printf("%-36s %4d passed %3d failed\n", tactic.c_str(), n.passed, n.failed);
        rows += std::string(rows.empty() ? "" : ",") + "\n  {\"tactic\": \"" + tactic +
                "\", \"passed\": " + std::to_string(n.passed) + ", \"failed\": " + std::to_string(n.failed) + "}";
    }
    std::printf("%zu runs, %d failed, %d refused with a reason\n", jobs.size(), failures, refused);
    if (!json.empty())
        if (std::FILE* f = std::fopen(json.c_str(), "w")) {
            std::fprintf(f, "{\"gpu\": \"%s\", \"runs\": %zu, \"failed\": %d, \"tactics\": [%s\n]}\n",
                         (*device)->info().fingerprint().c_str(), jobs.size(), failures, rows.c_str());
            std::fclose(f);
        }
    return failures ? 1 : 0;
}

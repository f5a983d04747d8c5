// SPDX-License-Identifier: Apache-2.0
// What the tuner does with kernels on a GPU, on a fake driver (fake_cuda_driver.cpp): planted faults are
// refused there as on the CPU, and drivers and GPUs that are too old are named.
#include <filesystem>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "device/cuda/target.h"
#include "interp/interp.h"
#include "ops/activation/op.h"
#include "support/case_problem.h"
#include "support/faulty_kernels.h"
#include "tactic/cuda_tactic.h"
#include "tactic/registry.h"
#include "tune/device_run.h"

namespace tw::test {

namespace {

// The fake driver, opened once and found by everybody under the driver's name.
template <class T>
T& onFake(char const* name)
{
    static void* const library = dlopen(TW_FAKE_DRIVER, RTLD_NOW);
    static T none{};
    EXPECT_TRUE(library) << dlerror();
    auto* const found = library ? static_cast<T*>(dlsym(library, name)) : nullptr;
    EXPECT_TRUE(found) << name;
    return found ? *found : none;
}
Result<std::shared_ptr<cuda::Device const>> openDevice(int version = 12000, int capability = 90)
{
    onFake<int>("twFakeVersion") = version;
    onFake<int>("twFakeCapability") = capability;
    TW_ASSIGN(auto driver, cuda::Driver::open());
    return cuda::Device::open(driver, 0);
}

// ReLU of channels-last pixels; without an eye for parts of wider tensors on one side, if asked.
class Pixels final : public ops::Kernel
{
public:
    enum Fault
    {
        kNone,
        kDenseInput,
        kDenseOutput,
    };
    explicit Pixels(Fault fault) : fault_(fault) {}
    Result<void> run(ops::RunArgs& args) const override
    {
        TensorRef x = args.inputs[0], y = args.outputs[0];
        x.stride = fault_ == kDenseInput ? 0 : x.stride;
        y.stride = fault_ == kDenseOutput ? 0 : y.stride;
        for (int64_t i = 0; i < y.count(); ++i)
            y.set(y.place(i), std::max(x.get(x.place(i)), 0.0));
        return {};
    }

private:
    Fault fault_;
};

} // namespace

TEST(FakeDevice, OldDriversAndGpusAreNamed)
{
    auto const driver = openDevice(11030);
    ASSERT_FALSE(driver.ok());
    EXPECT_NE(driver.error().message.find("the CUDA driver is too old: it is for CUDA 11.3"), std::string::npos)
        << driver.error().message;
    auto const gpu = openDevice(12000, 75);
    ASSERT_FALSE(gpu.ok());
    EXPECT_NE(gpu.error().message.find("(fake) has compute capability 7.5, 8.0 is the lowest"), std::string::npos)
        << gpu.error().message;
    EXPECT_TRUE(openDevice().ok());
}

// Of two NVRTCs the one of the driver's version, for what a newer one makes need not load.
TEST(FakeDevice, TheDriversOwnNvrtcIsFoundFirst)
{
    namespace fs = std::filesystem;
    fs::path const folder = fs::temp_directory_path() / ("nvrtc_" + std::to_string(getpid()));
    fs::create_directories(folder);
    for (char const* name : {"libnvrtc.so.12", "libnvrtc.so.13"})
        fs::copy_file(TW_LIBRARY_TO_FIND, folder / name, fs::copy_options::overwrite_existing);
    for (auto const& [version, name] :
         {std::pair(12040, "libnvrtc.so.12 has no nvrtc"), std::pair(13000, "libnvrtc.so.13 has no nvrtc")}) {
        auto const device = openDevice(version);
        ASSERT_TRUE(device.ok()) << device.error().message;
        auto const compiler = cuda::Compiler::open(cuda::SearchPath{{folder.string()}, {}, {}});
        ASSERT_FALSE(compiler.ok()); // a library of that name and no more
        EXPECT_NE(compiler.error().message.find(name), std::string::npos) << compiler.error().message;
    }
    fs::remove_all(folder);
}

// Kernels that make the same bytes of constants have them there once, for as long as one of them lives.
TEST(FakeDevice, PackedConstantsLieThereOnce)
{
    auto device = openDevice();
    ASSERT_TRUE(device.ok()) << device.error().message;
    cuda::Current const current(**device);
    ops::PackedConstants packed;
    std::string weights(1000, 'w'), others = weights;
    others[999] = 'v';
    auto const upload = [&](std::string const& bytes) {
        auto made = ops::uploadPacked(bytes, *device, packed);
        EXPECT_TRUE(made.ok()) << made.error().message;
        return made.ok() ? *made : nullptr;
    };
    auto const first = upload(weights), second = upload(std::string(weights)), third = upload(others),
               none = upload("");
    ASSERT_TRUE(first && second && third && none);
    EXPECT_EQ(first, second);
    EXPECT_NE(first, third);
    // Whole vectors can be read at the end. The fake GPU's memory is the host's.
    EXPECT_EQ(first->sizeBytes(), 1024);
    EXPECT_EQ(std::memcmp(first->data(), weights.data(), weights.size()), 0);
    EXPECT_EQ(std::memcmp(third->data(), others.data(), others.size()), 0);
    ops::PackedConstants ofAnotherEngine;
    auto const elsewhere = ops::uploadPacked(weights, *device, ofAnotherEngine);
    ASSERT_TRUE(elsewhere.ok());
    EXPECT_NE(*elsewhere, first);
}

TEST(FakeDevice, FaultsAreRefused)
{
    auto device = openDevice();
    ASSERT_TRUE(device.ok()) << device.error().message;
    cuda::Target target = cuda::Target::of(*device, std::make_shared<cuda::LazyCompiler>(cuda::SearchPath{}));
    int planted = 0, refused = 0;
    for (Extents const& x : {Extents{2, 4, 7, 9}, Extents{2, 4, 31, 37}}) { // compared whole, and at samples
        auto a = ops::convolution::Attrs::plain(2);
        a.groups = 2;
        a.prePadding = a.postPadding = {1, 1};
        ops::CaseList list;
        list.add("x" + x.str(), a,
                 {ops::f32(x), ops::constant(DataType::kFloat, {34, 2, 3, 3}), ops::constant(DataType::kFloat, {34})});
        auto g = makeCase(*ops::find("convolution"), list.cases[0]);
        ASSERT_TRUE(g.ok()) << g.error().message;
        auto made = caseProblem(**g);
        ASSERT_TRUE(made.ok()) << made.error().message;
        ops::Problem& problem = *made;
        problem.target.cuda = &target;
        tune::Checker checker(problem);
        auto check = [&](Fault fault) {
            return checker.check(problem, Convolution(*(*g)->node, fault), "test_faulty", serialWorkers());
        };
        auto const right = check(Fault::kNone);
        ASSERT_TRUE(right.ok()) << right.error().message;
        ASSERT_TRUE(right->isRight()) << "nothing was compared";
        for (Fault fault : kConvolutionFaults) {
            if (fault == Fault::kWritesBeyondOutput)
                continue; // GPU memory has no guard bytes: compute-sanitizer looks for that
            ++planted;
            refused += !check(fault).ok();
            EXPECT_FALSE(check(fault).ok()) << "fault " << int(fault) << ", " << x.str();
        }
        // And it is timed there.
        Convolution const kernel(*(*g)->node, Fault::kNone);
        auto buffers = checker.buffers(problem);
        ASSERT_TRUE(buffers.ok());
        auto run = tune::DeviceRun::create(problem, kernel, (*buffers)->onDevice);
        ASSERT_TRUE(run.ok()) << run.error().message;
        auto const us = (*run)->microseconds();
        ASSERT_TRUE(us.ok()) << us.error().message;
        EXPECT_GT(*us, 0);
    }
    EXPECT_EQ(refused, planted);
    EXPECT_EQ(planted, 2 * 14);
}

// Joins without copies make channels-last tensors parts of wider ones: what takes them for whole ones is refused.
TEST(FakeDevice, KernelsForWholeTensorsAreRefused)
{
    auto device = openDevice();
    ASSERT_TRUE(device.ok()) << device.error().message;
    cuda::Target target = cuda::Target::of(*device, std::make_shared<cuda::LazyCompiler>(cuda::SearchPath{}));
    for (Extents const& x : {Extents{2, 16, 7, 9}, Extents{2, 16, 31, 37}}) { // compared whole, and at samples
        ops::CaseList list;
        list.add("x" + x.str(), ops::activation::Attrs{}, {ops::input(DataType::kHalf, x)});
        auto g = makeCase(*ops::find("activation"), list.cases[0]);
        ASSERT_TRUE(g.ok()) << g.error().message;
        auto made = caseProblem(**g);
        ASSERT_TRUE(made.ok()) << made.error().message;
        ops::Problem& problem = *made;
        problem.target.cuda = &target;
        ops::setFormats(problem, {{Format::kHWC8}, {Format::kHWC8}});
        tune::Checker checker(problem);
        auto check = [&](Pixels::Fault fault) {
            return checker.check(problem, Pixels(fault), "test_pixels", serialWorkers());
        };
        auto const right = check(Pixels::kNone);
        ASSERT_TRUE(right.ok()) << right.error().message;
        ASSERT_TRUE(right->isRight()) << "nothing was compared";
        for (Pixels::Fault fault : {Pixels::kDenseInput, Pixels::kDenseOutput}) {
            auto const wrong = check(fault);
            ASSERT_FALSE(wrong.ok()) << "fault " << fault << ", " << x.str();
            EXPECT_NE(wrong.error().message.find("as parts of wider ones"), std::string::npos) << wrong.error().message;
        }
    }
}

} // namespace tw::test

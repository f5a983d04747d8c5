// SPDX-License-Identifier: Apache-2.0
// What needs neither GPU nor NVRTC.
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string_view>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/check.h"
#include "device/cuda/compiler.h"
#include "device/cuda/device.h"
#include "device/cuda/search_path.h"
#include "kernels/cuda/common/params.h"
#include "kernels/cuda/common/prelude.h"
#include "kernels/cuda/common/source.h"
#include "tactic/registry.h"
#include "tactic/tactic.h"

namespace tw::test {

namespace {

// As prelude.cuh writes it for 32-bit indices.
uint32_t divide(uint32_t n, cuda::Div const& v)
{
    uint32_t const high = uint32_t(uint64_t(n) * v.m >> 32);
    return (high + n) >> v.s;
}

} // namespace

TEST(CudaParts, DivisionByNumbersKnownAtLaunch)
{
    std::mt19937 random(1);
    constexpr uint32_t kMost = (uint32_t(1) << 31) - 1;
    for (int i = 0; i < 200000; ++i) {
        uint32_t d = random() >> (1 + random() % 31), n = random() >> 1;
        d = d == 0 ? 1 : d;
        if (i % 4 == 0)
            n = n / d * d - (n >= d ? i / 4 % 2 : 0); // at the borders
        ASSERT_EQ(divide(n, cuda::divBy(d)), n / d) << n << " / " << d;
    }
    for (uint32_t d : {1U, 2U, 3U, 7U, 1U << 30, (1U << 30) + 1, kMost - 1, kMost})
        for (uint32_t n : {0U, 1U, d - 1, d, kMost - 1, kMost})
            EXPECT_EQ(divide(n, cuda::divBy(d)), n / d) << n << " / " << d;
}

TEST(CudaParts, Text)
{
    EXPECT_EQ(cuda::expand("$a$+$b$+$a$ $c$", {{"a", "x"}, {"b", "$a$"}}), "x+$a$+x $c$");
    EXPECT_EQ(cuda::literal(1.0F), "__uint_as_float(1065353216u)");
    EXPECT_STREQ(cuda::storageOf(DataType::kBool), "b8");
    EXPECT_STREQ(cuda::unitOf(16), "unit16");
}

TEST(CudaParts, Constants)
{
    EXPECT_EQ(cuda::constant("kTile", -3), "constexpr int kTile = -3;\n");
    EXPECT_EQ(cuda::longConstant("kReach", 5), "constexpr long long kReach = 5ll;\n");
    EXPECT_EQ(cuda::flag("kWide", true), "constexpr bool kWide = true;\n");
    EXPECT_EQ(cuda::type("T", "f16"), "using T = f16;\n");
    EXPECT_EQ(cuda::number("kAlpha", 0.1F), "constexpr float kAlpha = 1.00000001e-01f;\n");
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(cuda::number("kLeast", -kInfinity), "constexpr float kLeast = __builtin_bit_cast(float, 0xff800000u);\n");
    std::mt19937 random(1);
    for (int i = 0; i < 1000; ++i) { // exactly, subnormal numbers too
        float const v = std::bit_cast<float>(uint32_t(random()));
        if (!std::isfinite(v))
            continue;
        std::string const text = cuda::number("k", v);
        EXPECT_EQ(std::strtof(text.c_str() + text.find('=') + 1, nullptr), v) << text;
    }
}

// What is embedded is what stands in the files.
TEST(CudaParts, Files)
{
    namespace fs = std::filesystem;
    size_t found = 0;
    for (fs::directory_entry const& e : fs::recursive_directory_iterator(TW_SOURCE_DIR))
        found += e.path().extension() == ".cuh";
    size_t embedded = 0;
    for (cuda::SourceFile const& file : cuda::sourceFiles()) {
        std::ifstream stream(fs::path(TW_SOURCE_DIR) / file.path);
        std::string const text{std::istreambuf_iterator<char>(stream), {}};
        EXPECT_EQ(file.text, text) << file.path;
        embedded += file.path.ends_with(".cuh");
    }
    EXPECT_EQ(embedded, found);
    EXPECT_GT(found, 10U);
}

// Each file once, before who needs it; what is no file of ours stays.
TEST(CudaParts, Includes)
{
    constexpr std::string_view kClusters = "kernels/cuda/common/clusters.cuh",
                               kDevice = "kernels/cuda/common/device.cuh";
    std::string const source = cuda::include("kernels/cuda/common/clusters.cuh") + cuda::constant("kTile", 1) +
                               cuda::include("kernels/cuda/common/device.cuh") + "#include \"other.h\"";
    std::string const text = cuda::withIncludes(source);
    auto count = [&](std::string_view what) {
        size_t n = 0;
        for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
            ++n;
        return n;
    };
    EXPECT_EQ(count("#define TW_INLINE"), 1U);
    EXPECT_EQ(count("clusterSync()\n{"), 1U);
    EXPECT_LT(text.find("#define TW_INLINE"), text.find("clusterSync()"));
    EXPECT_LT(text.find("clusterSync()"), text.find("kTile"));
    EXPECT_EQ(count(kClusters) + count(kDevice) + count("#pragma once"), 0U);
    EXPECT_TRUE(text.ends_with("#include \"other.h\""));
    EXPECT_EQ(cuda::withIncludes(text), text);
    EXPECT_THROW(cuda::include("kernels/cuda/none.cuh"), CheckFailed);
}

TEST(CudaParts, LibrariesThatAreNotThere)
{
    auto named = cuda::Compiler::open(cuda::SearchPath{{"/nowhere/libnvrtc.so"}, {}, {}});
    ASSERT_FALSE(named.ok());
    EXPECT_NE(named.error().message.find("/nowhere/libnvrtc.so"), std::string::npos);
    auto library = cuda::Library::open("a library", {"libno_such_library_anywhere.so"}, {{}, {"/a"}, {"/b"}});
    ASSERT_FALSE(library.ok());
    EXPECT_NE(library.error().message.find("a library (libno_such_library_anywhere.so) was not found"),
              std::string::npos);
}

TEST(CudaParts, CopiesOfLibrariesHaveTheirOwnGlobals)
{
    auto library = cuda::Library::open("a library", {TW_LIBRARY_TO_FIND}, {{TW_LIBRARY_TO_FIND}, {}, {}});
    ASSERT_TRUE(library.ok()) << library.error().message;
    auto const count = [](cuda::Library const& l) {
        return reinterpret_cast<int (*)()>(l.symbol("twLibraryToFind"))();
    };
    EXPECT_EQ(count(**library), 1);
    EXPECT_EQ(count(**library), 2);
    auto const one = (*library)->copy(), other = (*library)->copy();
    ASSERT_TRUE(one && other);
    EXPECT_EQ(count(*one), 1);
    EXPECT_EQ(count(*other), 1);
    EXPECT_EQ(count(**library), 3);
}

// What the environment names, beside libnvinfer, the loader's path, toolkit, packages: the first that has it.
TEST(CudaParts, LibrariesAreSearchedInOrder)
{
    namespace fs = std::filesystem;
    fs::path const root = fs::path(testing::TempDir()) / ("tw_libraries_" + std::to_string(getpid()));
    std::string const onPath = "libm.so.6", unknown = "libtw_to_find.so";
    auto put = [&](fs::path const& folder, std::string const& name) {
        fs::create_directories(root / folder);
        fs::copy_file(TW_LIBRARY_TO_FIND, root / folder / name, fs::copy_options::overwrite_existing);
        return (root / folder).string();
    };
    std::string const given = put("given", unknown), before = put("before", onPath), after = put("after", unknown);
    put("after", onPath);
    auto fileOf = [&](std::string const& name, cuda::SearchPath const& path) {
        auto library = cuda::Library::open("a library", {name.c_str()}, path);
        return library.ok() ? (*library)->file() : "error: " + library.error().message;
    };
    EXPECT_EQ(fileOf(unknown, {{given}, {before}, {after}}), given + "/" + unknown) << "a folder is named";
    EXPECT_EQ(fileOf(onPath, {{given + "/" + unknown}, {before}, {after}}), given + "/" + unknown) << "a file is";
    EXPECT_EQ(fileOf(onPath, {{given}, {before}, {after}}).substr(0, 6), "error:") << "named, but not there: no other";
    EXPECT_EQ(fileOf(onPath, {{}, {before}, {after}}), before + "/" + onPath) << "beside libnvinfer";
    EXPECT_EQ(fileOf(onPath, {{}, {}, {after}}), onPath) << "the loader's path";
    EXPECT_EQ(fileOf(unknown, {{}, {before}, {after}}), after + "/" + unknown) << "folders behind it";

    for (char const* folder : {"venv/lib/python3.9/site-packages", "venv/lib/python3.11/site-packages",
                               "conda/lib/python3.12/site-packages", "debian/lib/python3/dist-packages"})
        fs::create_directories(root / folder);
    std::string const at = root.string();
    cuda::SearchPath const path = cuda::searchPathFor(
        {"", "/opt/py/site-packages/tensorrt/lib", {at + "/venv", "", at + "/conda", at + "/venv", at + "/debian"}},
        {"cu13/lib", "cuda_nvrtc/lib"});
    EXPECT_TRUE(path.given.empty());
    EXPECT_EQ(path.before, std::vector<std::string>{"/opt/py/site-packages/tensorrt/lib"});
    EXPECT_EQ(path.after, (std::vector<std::string>{
                              "/usr/local/cuda/lib64", "/usr/local/cuda/lib", "/opt/py/site-packages/nvidia/cu13/lib",
                              "/opt/py/site-packages/nvidia/cuda_nvrtc/lib", at + "/venv/lib",
                              at + "/venv/lib/python3.11/site-packages/nvidia/cu13/lib",
                              at + "/venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib",
                              at + "/venv/lib/python3.9/site-packages/nvidia/cu13/lib",
                              at + "/venv/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib", at + "/conda/lib",
                              at + "/conda/lib/python3.12/site-packages/nvidia/cu13/lib",
                              at + "/conda/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib", at + "/debian/lib",
                              at + "/debian/lib/python3/dist-packages/nvidia/cu13/lib",
                              at + "/debian/lib/python3/dist-packages/nvidia/cuda_nvrtc/lib"}));
    EXPECT_EQ(cuda::searchPathFor({"/named", "", {}}, {}).given, std::vector<std::string>{"/named"});

    using List = std::vector<std::string>;
    fs::create_directories(root / "venv/bin");
    fs::create_symlink("/bin/sh", root / "venv/bin/python"); // any program
    auto prefixes = cuda::pythonPrefixes;
    EXPECT_EQ(prefixes("/opt/conda/bin/python3.12", "/home/me/venv/bin/python", ""),
              (List{"/home/me/venv", "/opt/conda"}));
    EXPECT_EQ(prefixes("/usr/bin/python3.11", "venv/bin/python", ""), (List{"venv", "/usr", "/usr/local"}));
    EXPECT_EQ(prefixes("/opt/conda/bin/python3.12", "python", "/nowhere:" + at + "/venv/bin:/usr/bin"),
              (List{at + "/venv", "/opt/conda"}));
    EXPECT_EQ(prefixes("/opt/conda/bin/python3.12", "", ""), List{"/opt/conda"});
    EXPECT_EQ(prefixes("/usr/bin/trtexec", "/opt/conda/bin/python3.12", "/usr/bin"), List{}) << "it is no Python";
    EXPECT_EQ(prefixes("", "", ""), List{});
    EXPECT_EQ(prefixes("/python", "python", "::/"), List{});
    fs::remove_all(root);
}

TEST(CudaParts, ArchitectureOfKernels)
{
    cuda::DeviceInfo info;
    auto of = [&](int major, int minor) {
        info.major = major;
        info.minor = minor;
        return info.architecture();
    };
    EXPECT_EQ(of(8, 0), "sm_80");
    EXPECT_EQ(of(8, 9), "sm_80");
    EXPECT_EQ(of(9, 0), "sm_90a");
    EXPECT_EQ(of(10, 0), "sm_100");
}

// The plain tactic closes each list; every op that has CPU kernels has CUDA ones.
TEST(CudaParts, EveryOpHasTactics)
{
    for (ir::OpDef const* op : ops::all()) {
        EXPECT_EQ(op->cudaTactics == nullptr, op->cpuTactics == nullptr) << op->name;
        if (!op->cudaTactics)
            continue;
        ASSERT_FALSE(op->cudaTactics->empty()) << op->name;
        for (ops::Tactic const* t : *op->cudaTactics)
            EXPECT_EQ(int(t->backend()), int(ops::Backend::kCuda)) << t->name();
        EXPECT_NE(std::string(op->cudaTactics->back()->name()).find("_plain_cuda"), std::string::npos) << op->name;
    }
}

} // namespace tw::test

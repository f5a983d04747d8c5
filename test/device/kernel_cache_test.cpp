// SPDX-License-Identifier: Apache-2.0
// Compiled kernels in a folder: what is kept is found again, by another object, too; damage and a folder that does not do cost
// nothing but a sentence.
#include "device/cuda/kernel_cache.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/cuda/compiler.h"

namespace tw::cuda {
namespace {

namespace fs = std::filesystem;

Compiled compiledOf(std::string const& code)
{
    Compiled c;
    c.cubin = code;
    c.kernels = {{"first", 32, 0, 1024}, {"second", 255, 16, 0}};
    return c;
}

class Folder : public testing::Test
{
protected:
    Folder()
    {
        char name[] = "/tmp/tw_kernel_cache_XXXXXX";
        path = std::string(mkdtemp(name));
    }
    ~Folder() override
    {
        chmod(path.c_str(), 0700);
        fs::remove_all(path);
    }
    std::vector<fs::path> files() const { return {fs::directory_iterator(path), fs::directory_iterator()}; }

    std::string path;
};
using KernelCacheTest = Folder;

TEST_F(KernelCacheTest, WhatIsKeptIsFoundByOthers)
{
    std::string const inside = path + "/made/by/us";
    KernelCache one(inside), other(inside), none("");
    EXPECT_FALSE(one.find({1, 2}));
    one.keep({1, 2}, compiledOf("code"));
    none.keep({1, 2}, compiledOf("code"));
    EXPECT_FALSE(none.find({1, 2}));
    auto const found = other.find({1, 2});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->cubin, "code");
    ASSERT_EQ(found->kernels.size(), 2U);
    EXPECT_EQ(found->kernels[1].kernel, "second");
    EXPECT_EQ(found->kernels[1].registers, 255);
    EXPECT_EQ(found->kernels[1].spillBytes, 16);
    EXPECT_FALSE(other.find({2, 1}));
    EXPECT_EQ(other.foundCount(), 1);
    EXPECT_EQ(one.takeComplaint() + other.takeComplaint(), "");
    struct stat is = {};
    ASSERT_EQ(stat(inside.c_str(), &is), 0);
    EXPECT_EQ(is.st_mode & 0777U, 0700U);
}

TEST_F(KernelCacheTest, DamageIsNoted)
{
    std::string const whole = writeKernelFile(compiledOf("some code"), {7, 8});
    ASSERT_TRUE(readKernelFile(whole, {7, 8}).ok());
    EXPECT_FALSE(readKernelFile(whole, {8, 7}).ok());
    for (size_t size = 0; size < whole.size(); ++size)
        EXPECT_FALSE(readKernelFile(whole.substr(0, size), {7, 8}).ok()) << size;
    for (size_t at = 0; at < whole.size(); ++at) {
        std::string damaged = whole;
        damaged[at] = char(damaged[at] ^ 0x40);
        bool const isGap = at >= 12 && at < 16; // of the header
        EXPECT_EQ(readKernelFile(damaged, {7, 8}).ok(), isGap) << at;
    }
    KernelCache cache(path);
    cache.keep({7, 8}, compiledOf("some code"));
    ASSERT_EQ(files().size(), 1U);
    std::ofstream(files()[0], std::ios::binary) << whole.substr(0, 20);
    EXPECT_FALSE(cache.find({7, 8}));
    EXPECT_NE(cache.takeComplaint().find("cut off"), std::string::npos);
    EXPECT_EQ(cache.takeComplaint(), ""); // once
    EXPECT_TRUE(files().empty());         // it makes room for a sound one
    cache.keep({7, 8}, compiledOf("some code"));
    EXPECT_TRUE(cache.find({7, 8}));
}

TEST_F(KernelCacheTest, FoldersThatWillNotDo)
{
    std::ofstream(path + "/file") << "x";
    for (std::string const& folder : {path + "/file", path + "/file/below"}) {
        KernelCache cache(folder);
        cache.keep({1, 1}, compiledOf("code"));
        EXPECT_FALSE(cache.find({1, 1}));
        EXPECT_NE(cache.takeComplaint() == "", folder == path + "/file") << folder;
    }
    chmod(path.c_str(), 0777); // anybody may put code there
    KernelCache open(path);
    open.keep({1, 1}, compiledOf("code"));
    EXPECT_FALSE(open.find({1, 1}));
    EXPECT_NE(open.takeComplaint().find("by others"), std::string::npos);
    if (geteuid() == 0)
        GTEST_SKIP() << "root may write everywhere";
    chmod(path.c_str(), 0500);
    KernelCache readOnly(path);
    readOnly.keep({1, 1}, compiledOf("code"));
    EXPECT_NE(readOnly.takeComplaint().find("cannot be written"), std::string::npos);
}

TEST_F(KernelCacheTest, TheOldestMakeRoom)
{
    std::string const code(10000, 'c');
    {
        KernelCache cache(path, 1 << 20);
        for (uint64_t i = 0; i < 20; ++i) {
            cache.keep({i, 0}, compiledOf(code));
            for (fs::path const& f : files())
                fs::last_write_time(f, fs::last_write_time(f) - std::chrono::minutes(1));
        }
    }
    EXPECT_EQ(files().size(), 20U);
    KernelCache cache(path, 100'000);
    cache.keep({100, 0}, compiledOf(code));
    EXPECT_LE(files().size(), 6U);
    EXPECT_TRUE(cache.find({19, 0}));
    EXPECT_FALSE(cache.find({0, 0}));
    EXPECT_TRUE(cache.find({100, 0}));
}

TEST_F(KernelCacheTest, ManyThreadsShareIt)
{
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            KernelCache cache(path);
            for (uint64_t i = 0; i < 50; ++i) {
                cache.keep({i, 3}, compiledOf("code of " + std::to_string(i)));
                auto const found = cache.find({i, 3});
                wrong += !found || found->cubin != "code of " + std::to_string(i);
            }
            wrong += !cache.takeComplaint().empty();
        });
    for (std::thread& t : threads)
        t.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(files().size(), 50U);
}

} // namespace
} // namespace tw::cuda

// SPDX-License-Identifier: Apache-2.0
// Files that are written: through links, over what is there, into pipes and devices.
#include "output_file.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"
#include "files.h"

namespace {

namespace fs = std::filesystem;
using tw::trtexec::checkWritable;
using tw::trtexec::Failure;
using tw::trtexec::FileLock;
using tw::trtexec::writeFile;

class OutputFiles : public testing::Test
{
protected:
    OutputFiles()
    {
        std::string name = (fs::temp_directory_path() / "tw_output_XXXXXX").string();
        folder = fs::canonical(mkdtemp(name.data()));
    }
    ~OutputFiles() override
    {
        fs::permissions(folder, fs::perms::owner_all);
        fs::remove_all(folder);
    }

    static std::string text(fs::path const& path)
    {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    static void put(fs::path const& path, std::string const& content)
    {
        std::ofstream(path, std::ios::binary) << content;
    }
    size_t entries() const
    {
        return static_cast<size_t>(
            std::distance(fs::recursive_directory_iterator(folder), fs::recursive_directory_iterator()));
    }
    static std::string whyNot(fs::path const& path)
    {
        std::string before, after;
        try {
            checkWritable(path.string());
        } catch (Failure const& failure) {
            before = failure.what();
        }
        try {
            writeFile(path.string(), "new");
        } catch (Failure const& failure) {
            after = failure.what();
        }
        EXPECT_EQ(before, after);
        return after;
    }

    fs::path folder;
};

TEST_F(OutputFiles, NewAndOldFilesAreWrittenWholeAndNothingElseIsLeft)
{
    fs::path const file = folder / "plan";
    checkWritable(file.string());
    EXPECT_EQ(entries(), 0u);
    writeFile(file.string(), "one");
    EXPECT_EQ(text(file), "one");
    fs::path const longName = folder / std::string(255, 'n');
    writeFile(longName.string(), "two");
    EXPECT_EQ(text(longName), "two");
    writeFile(file.string(), std::string_view());
    EXPECT_EQ(fs::file_size(file), 0u);
    EXPECT_EQ(entries(), 2u);
    // A name without a folder.
    fs::path const before = fs::current_path();
    fs::current_path(folder);
    writeFile("here", "three");
    fs::current_path(before);
    EXPECT_EQ(text(folder / "here"), "three");
}

TEST_F(OutputFiles, AReaderKeepsWhatItHasOpenAndTheModeStays)
{
    fs::path const file = folder / "plan";
    put(file, "old content");
    ASSERT_EQ(chmod(file.c_str(), 0640), 0);
    std::ifstream reader(file);
    writeFile(file.string(), "new");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), "old content");
    struct stat info
    {};
    ASSERT_EQ(stat(file.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0640u);
    EXPECT_EQ(info.st_uid, geteuid());
    EXPECT_EQ(text(file), "new");
}

TEST_F(OutputFiles, TheOwnerStays)
{
    if (geteuid() != 0)
        GTEST_SKIP() << "only root can make a file of another owner";
    fs::path const file = folder / "plan";
    put(file, "old");
    ASSERT_EQ(chown(file.c_str(), 12345, 23456), 0);
    writeFile(file.string(), "new");
    struct stat info
    {};
    ASSERT_EQ(stat(file.c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, 12345u);
    EXPECT_EQ(info.st_gid, 23456u);
    EXPECT_EQ(text(file), "new");
}

TEST_F(OutputFiles, LinksAreFollowed)
{
    fs::create_directories(folder / "a/b");
    fs::create_directories(folder / "target");
    put(folder / "target/plan", "old");
    fs::create_symlink(folder / "target/plan", folder / "a/absolute");
    fs::create_symlink("../absolute", folder / "a/b/relative");
    fs::create_symlink("b/relative", folder / "a/chain");
    for (char const* link : {"a/absolute", "a/b/relative", "a/chain"}) {
        writeFile((folder / link).string(), link);
        EXPECT_TRUE(fs::is_symlink(folder / link)) << link;
        EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder / "target/plan")));
        EXPECT_EQ(text(folder / "target/plan"), link);
    }
    fs::create_directory_symlink("target", folder / "linked");
    writeFile((folder / "linked/plan").string(), "by a folder");
    EXPECT_EQ(text(folder / "target/plan"), "by a folder");
    EXPECT_TRUE(fs::is_symlink(folder / "linked"));
}

TEST_F(OutputFiles, ALinkToNothingMakesItsTarget)
{
    fs::create_directory(folder / "target");
    fs::create_symlink("target/later", folder / "link");
    checkWritable((folder / "link").string());
    EXPECT_FALSE(fs::exists(folder / "target/later"));
    writeFile((folder / "link").string(), "made");
    EXPECT_TRUE(fs::is_symlink(folder / "link"));
    EXPECT_EQ(text(folder / "target/later"), "made");

    fs::create_symlink("missing/later", folder / "lost");
    EXPECT_NE(whyNot(folder / "lost").find("No such file or directory"), std::string::npos);
    EXPECT_TRUE(fs::is_symlink(folder / "lost"));
    fs::create_symlink("circle", folder / "circle");
    EXPECT_NE(whyNot(folder / "circle").find("Too many levels of symbolic links"), std::string::npos);
}

TEST_F(OutputFiles, FoldersAreRefused)
{
    fs::create_directory(folder / "folder");
    fs::create_directory_symlink("folder", folder / "link");
    for (char const* name : {"folder", "folder/", "link", "link/", "."})
        EXPECT_NE(whyNot(folder / name).find("Is a directory"), std::string::npos) << name;
    EXPECT_NE(whyNot(folder / "missing/plan").find("No such file or directory"), std::string::npos);
    put(folder / "file", "");
    EXPECT_NE(whyNot(folder / "file/plan").find("Not a directory"), std::string::npos);
}

TEST_F(OutputFiles, APipeIsWrittenTo)
{
    fs::path const pipe = folder / "pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    fs::create_symlink("pipe", folder / "link");
    std::string const content(300000, 'p'); // more than the kernel holds
    for (char const* name : {"pipe", "link"}) {
        checkWritable((folder / name).string());
        std::string got;
        std::thread reader([&] { got = text(pipe); });
        writeFile((folder / name).string(), content);
        reader.join();
        EXPECT_EQ(got, content) << name;
        EXPECT_TRUE(fs::is_fifo(fs::symlink_status(pipe)));
    }
    // A reader that goes away is an error, and the program lives.
    std::thread reader([&] {
        std::ifstream file(pipe);
        file.get();
    });
    EXPECT_THROW(writeFile(pipe.string(), content), Failure);
    reader.join();
    EXPECT_EQ(entries(), 2u);
}

TEST_F(OutputFiles, ADeviceStaysADevice)
{
    fs::create_symlink("/dev/null", folder / "null");
    fs::create_symlink("/dev/full", folder / "full");
    writeFile((folder / "null").string(), "gone");
    EXPECT_TRUE(fs::is_symlink(folder / "null"));
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
    EXPECT_THROW(writeFile((folder / "full").string(), "no room"), Failure);
    EXPECT_TRUE(fs::is_character_file("/dev/full"));
    { // no lock beside it either
        FileLock const lock((folder / "null").string());
    }
    EXPECT_FALSE(fs::exists("/dev/null.lock"));
    EXPECT_EQ(entries(), 2u);
}

TEST_F(OutputFiles, ADescriptorOfTheProcessIsWrittenToAsItStands)
{
    fs::path const log = folder / "log";
    int const fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(write(fd, "before ", 7), 7);
    writeFile("/dev/fd/" + std::to_string(fd), "between ");
    ASSERT_EQ(write(fd, "after", 5), 5);
    close(fd);
    EXPECT_EQ(text(log), "before between after");

    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    fs::create_symlink("/proc/self/fd/" + std::to_string(ends[1]), folder / "link");
    writeFile((folder / "link").string(), "piped");
    char got[5] = {};
    EXPECT_EQ(read(ends[0], got, 5), 5);
    EXPECT_EQ(std::string(got, 5), "piped");
    close(ends[0]);
    close(ends[1]);
}

TEST_F(OutputFiles, LocksLieBesideTheTarget)
{
    fs::create_directory(folder / "target");
    fs::create_symlink("target/cache", folder / "link");
    FileLock const lock((folder / "link").string());
    EXPECT_FALSE(fs::exists(folder / "link.lock"));
    int const other = open((folder / "target/cache.lock").c_str(), O_RDWR);
    ASSERT_GE(other, 0);
    EXPECT_NE(flock(other, LOCK_EX | LOCK_NB), 0);
    close(other);
}

TEST_F(OutputFiles, WhatMayNotBeWrittenIsNotReplaced)
{
    if (geteuid() == 0)
        GTEST_SKIP() << "root may write everything";
    put(folder / "file", "kept");
    ASSERT_EQ(chmod((folder / "file").c_str(), 0444), 0);
    EXPECT_NE(whyNot(folder / "file").find("Permission denied"), std::string::npos);
    EXPECT_EQ(text(folder / "file"), "kept");
    // The other way round: a folder that takes no new file, and a file in it that may be written.
    ASSERT_EQ(chmod((folder / "file").c_str(), 0644), 0);
    ASSERT_EQ(chmod(folder.c_str(), 0555), 0);
    writeFile((folder / "file").string(), "in place");
    EXPECT_EQ(text(folder / "file"), "in place");
}

} // namespace

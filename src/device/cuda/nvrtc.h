// SPDX-License-Identifier: Apache-2.0
// NVRTC's functions, and copies of the library. Its front end serves one thread at a time, for a tenth of the time of a large source and half of
// that of a small one, so that sixteen threads wait for each other. A copy of the file has globals, and so a lock, of its own.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>

#include "base/result.h"
#include "device/cuda/library.h"

namespace tw::cuda {

struct NvrtcProgram; // NVRTC's own

struct Nvrtc
{
#define TW_NVRTC(name, result, parameters) result(*name) parameters = nullptr;
#include "device/cuda/nvrtc.def"
#undef TW_NVRTC
    std::unique_ptr<Library> library;

    static Result<std::unique_ptr<Nvrtc>> of(std::unique_ptr<Library> library);
    // Null where there can be none, or where it does not compile.
    std::unique_ptr<Nvrtc> copy() const;

private:
    bool compiles() const; // a kernel that does nothing
};

// The library, and copies that are made while more threads compile than one serves. They stay: each is a file in memory.
class NvrtcCopies
{
    struct One
    {
        std::unique_ptr<Nvrtc> nvrtc;
        int users = 0;
    };

public:
    explicit NvrtcCopies(std::unique_ptr<Nvrtc> first) { all_.push_back({std::move(first)}); }
    Nvrtc const& first() const { return *all_.front().nvrtc; }
    int count();

    // That of the fewest users, for one source.
    class Use
    {
    public:
        explicit Use(NvrtcCopies& from) : from_(from), one_(from.take()) {}
        ~Use() { from_.leave(one_, seconds()); }
        Use(Use const&) = delete;
        Use& operator=(Use const&) = delete;
        Nvrtc const& operator*() const { return *one_.nvrtc; }
        double seconds() const
        {
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
        }

    private:
        NvrtcCopies& from_;
        One& one_;
        std::chrono::steady_clock::time_point const begin_ = std::chrono::steady_clock::now();
    };

private:
    enum class Copying
    {
        kNotYet, // no source has taken its time
        kMay,
        kBusy,
        kRefused,
    };
    One& take();
    void leave(One& one, double seconds);
    One& ofFewestUsers();

    std::mutex mutex_;
    std::deque<One> all_; // none ever moves
    Copying copying_ = Copying::kNotYet;
};

} // namespace tw::cuda

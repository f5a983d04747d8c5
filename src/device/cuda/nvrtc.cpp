// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/nvrtc.h"

#include <algorithm>

namespace tw::cuda {

namespace {

// On the sixteen cores beside an H200, 60 sources that take 26 s of processor time took 3.2 s by one library and 2.2 s by four or eight.
constexpr int kUsersOfOne = 4;
constexpr size_t kMostCopies = 8;
constexpr double kLongSource = 0.01; // seconds; a copy takes ten times as long

} // namespace

Result<std::unique_ptr<Nvrtc>> Nvrtc::of(std::unique_ptr<Library> library)
{
    auto n = std::make_unique<Nvrtc>();
#define TW_NVRTC(name, result, parameters)                                                                             \
    n->name = reinterpret_cast<decltype(n->name)>(library->symbol(#name));                                             \
    if (!n->name)                                                                                                      \
        return failedInitialization(library->file() + " has no " #name ": it is too old");
#include "device/cuda/nvrtc.def"
#undef TW_NVRTC
    n->library = std::move(library);
    return n;
}

std::unique_ptr<Nvrtc> Nvrtc::copy() const
{
    std::unique_ptr<Library> file = library->copy();
    if (!file)
        return nullptr;
    auto made = of(std::move(file));
    return made.ok() && (*made)->compiles() ? std::move(*made) : nullptr;
}

bool Nvrtc::compiles() const
{
    NvrtcProgram* program = nullptr;
    if (nvrtcCreateProgram(&program, "__global__ void f() {}", "kernel.cu", 0, nullptr, nullptr) != 0)
        return false;
    int const status = nvrtcCompileProgram(program, 0, nullptr);
    nvrtcDestroyProgram(&program);
    return status == 0;
}

int NvrtcCopies::count()
{
    std::lock_guard lock(mutex_);
    return int(all_.size());
}

NvrtcCopies::One& NvrtcCopies::ofFewestUsers()
{
    return *std::min_element(all_.begin(), all_.end(), [](One const& a, One const& b) { return a.users < b.users; });
}

NvrtcCopies::One& NvrtcCopies::take()
{
    std::unique_lock lock(mutex_);
    bool const isWanted = all_.size() < kMostCopies && ofFewestUsers().users >= kUsersOfOne;
    if (copying_ == Copying::kMay && isWanted) {
        copying_ = Copying::kBusy; // others go on with what there is
        lock.unlock();
        auto copy = first().copy();
        lock.lock();
        copying_ = copy ? Copying::kMay : Copying::kRefused;
        if (copy)
            all_.push_back({std::move(copy)});
    }
    One& one = ofFewestUsers();
    ++one.users;
    return one;
}

void NvrtcCopies::leave(One& one, double seconds)
{
    std::lock_guard lock(mutex_);
    --one.users;
    if (copying_ == Copying::kNotYet && seconds >= kLongSource)
        copying_ = Copying::kMay;
}

} // namespace tw::cuda

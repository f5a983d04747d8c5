// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "energy.h"
#include "failure.h"

namespace tw::trtexec {

namespace {

namespace fs = std::filesystem;

// The only line of a file in sysfs.
std::string readLine(fs::path const& path)
{
    errno = 0; // and so it stays where the file is empty
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> const file(std::fopen(path.c_str(), "re"), std::fclose);
    char line[128] = {};
    if (!file || !std::fgets(line, sizeof line, file.get()))
        throw Failure(fmt::format("'{}' cannot be read: {}{}", path.string(),
                                  errno ? std::strerror(errno) : "it is empty",
                                  errno == EACCES ? " (most kernels let root alone read energy counters)" : ""));
    line[std::strcspn(line, "\n")] = 0;
    return line;
}

uint64_t readNumber(fs::path const& path)
{
    std::string const text = readLine(path);
    uint64_t number = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
        throw Failure(fmt::format("'{}' holds '{}', which is no count of microjoules", path.string(), text));
    return number;
}

// The counter of a package, made one that does not run over.
class Domain
{
public:
    explicit Domain(fs::path const& folder)
        : counter_(folder / "energy_uj"), largest_(readNumber(folder / "max_energy_range_uj")),
          last_(readNumber(counter_))
    {}

    double joules()
    {
        uint64_t const now = readNumber(counter_);
        // A counter that goes back has passed its largest number; where that cannot be, it began again.
        uint64_t const rest = largest_ >= last_ ? largest_ - last_ : 0;
        total_ += static_cast<double>(now >= last_ ? now - last_ : rest + now);
        last_ = now;
        return total_ / 1e6;
    }

private:
    fs::path counter_;
    uint64_t largest_, last_; // microjoules
    double total_ = 0;        // likewise
};

// intel-rapl:N is a whole (on AMD's CPUs, too), intel-rapl:N:M a part of it.
bool isWhole(std::string_view name)
{
    constexpr std::string_view kPrefix = "intel-rapl:";
    return name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
           name.find_first_not_of("0123456789", kPrefix.size()) == std::string_view::npos;
}

class Rapl : public EnergyCounter
{
public:
    explicit Rapl(std::string const& folder)
    {
        std::error_code error;
        std::vector<fs::path> found;
        for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
            // psys is the whole machine, with the packages in it.
            if (isWhole(at->path().filename().string()) && readLine(at->path() / "name").starts_with("package"))
                found.push_back(at->path());
        if (error)
            throw Failure(fmt::format("'{}': {}; the kernel shows no energy counters of the CPU (RAPL) here", folder,
                                      error.message()));
        if (found.empty())
            throw Failure(fmt::format("'{}' has no counter of a CPU's package (intel-rapl:N)", folder));
        std::sort(found.begin(), found.end());
        for (fs::path const& path : found)
            packages_.emplace_back(path);
    }

    std::string source() const override
    {
        return fmt::format("RAPL, {} CPU package{}", packages_.size(), packages_.size() == 1 ? "" : "s");
    }

    double joules() override
    {
        double sum = 0;
        for (Domain& package : packages_)
            sum += package.joules();
        return sum;
    }

private:
    std::vector<Domain> packages_;
};

} // namespace

std::unique_ptr<EnergyCounter> openRapl(std::string const& folder)
{
    return std::make_unique<Rapl>(folder);
}

} // namespace tw::trtexec

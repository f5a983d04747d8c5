// SPDX-License-Identifier: Apache-2.0
// usage: test_cuda_compile [--all | --sample N] [--seed S] [--filter TEXT] [--threads N] [--report FILE]
//        test_cuda_compile --dump DIR | --code FILE [--filter TEXT]
// Compiles the kernels of the op cases for sm_80 and sm_90a, without a GPU: each distinct source once, on as many
// threads as there are processors. --sample takes N cases, by a seed that is today's date unless given, of each a config
// of every tactic and architecture, and of all others the shortest sources that it takes to have compiled every .cuh file.
// Reports registers, spills and seconds of each tactic. Exit status 77, with the reason: there is no NVRTC.
// --dump writes all sources of all cases into DIR, numbered, and compiles none: what a change of the generators has
// changed is the difference of two folders. --code compiles all of them and writes a line each: the case, tactic and
// architecture, and of each kernel a hash of its machine code, its instructions, registers and bytes of spills; what a
// change of device code has changed is the difference of two files.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string_view>
#include <thread>

#include <dlfcn.h>

#include "base/hash.h"
#include "cuda_cases.h"
#include "device/cuda/target.h"
#include "kernels/cuda/common/source.h"
#include "kernels/cuda/rates/rates.h"

namespace {

using namespace tw;

constexpr char const* kArchitectures[] = {"sm_80", "sm_90a"};

struct Source
{
    std::string text, label; // label: of the first case that has the text
    std::string tactic;
    int architecture = 0;
    size_t number = 0; // of that case
    bool isTaken = false;
};

struct Total
{
    int kernels = 0, spilling = 0, mostRegisters = 0;
    double seconds = 0;
};

// What the tactics' build() would have compiled. Failures are printed and counted.
std::vector<Source> sourcesOf(std::vector<test::CudaCase> const& cases, int& failures)
{
    std::vector<Source> list;
    void* const recorder = dlopen(TW_NVRTC_RECORDER, RTLD_NOW | RTLD_LOCAL);
    auto const take =
        recorder ? reinterpret_cast<void (*)(std::vector<std::string>*)>(dlsym(recorder, "twTakeSources")) : nullptr;
    if (!take) {
        std::printf("FAILED: %s\n", dlerror());
        ++failures;
        return list;
    }
    auto const compiler = std::make_shared<cuda::LazyCompiler>(cuda::SearchPath{{TW_NVRTC_RECORDER}, {}, {}});
    std::vector<std::string> texts;
    for (int a = 0; a < int(std::size(kArchitectures)); ++a) {
        cuda::Target target;
        target.compiler = compiler;
        target.architecture = kArchitectures[a];
        target.capability = target.architecture == "sm_90a" ? 90 : 80;
        target.multiprocessors = target.capability == 90 ? 132 : 108; // H200, A100: configs depend on it
        for (size_t number = 0; number < cases.size(); ++number) {
            test::CudaCase const& c = cases[number];
            ops::Problem problem = c.problem;
            problem.target.cuda = &target;
            for (ops::Tactic const* t : *c.op->cudaTactics) {
                if (!t->supports(problem).ok)
                    continue;
                for (ops::Config const& config : t->configs(problem)) {
                    std::string const label = c.name + " " + t->name() + " " + kArchitectures[a];
                    auto const image = t->build(problem, config);
                    if (!image.ok()) {
                        std::printf("FAILED %s: %s\n", label.c_str(), image.error().message.c_str());
                        ++failures;
                    }
                    take(&texts); // the compiler asks for each text once
                    for (std::string& text : texts)
                        list.push_back({std::move(text), label, t->name(), a, number});
                }
            }
        }
    }
    for (int a = 0; a < int(std::size(kArchitectures)); ++a)
        for (auto what : {cuda::RateOf::kF32, cuda::RateOf::kTf32, cuda::RateOf::kF16})
            if (auto const kernel = cuda::rateKernel(what, std::string_view(kArchitectures[a]) == "sm_90a" ? 90 : 80))
                list.push_back({cuda::withIncludes(kernel->source), std::string("rates ") + kArchitectures[a],
                                cuda::kRateKernel, a, 0});
    return list;
}

// Device code of a file as it stands in a source: after its includes.
std::string_view bodyOf(cuda::SourceFile const& file)
{
    size_t const last = file.text.rfind("\n#include \"");
    size_t const from = last == std::string_view::npos ? file.text.find("#pragma once") : last + 1;
    return file.text.substr(std::min(file.text.find('\n', from), file.text.size()));
}

// Of sources of one case, tactic and architecture, which lie side by side: all if everything is taken, else one.
void takeSample(std::vector<Source>& sources, size_t sample, uint64_t seed)
{
    std::mt19937_64 random(seed);
    bool const takesAll = sample == SIZE_MAX;
    for (size_t begin = 0, end = 0; begin < sources.size(); begin = end) {
        size_t const number = sources[begin].number;
        while (end < sources.size() && sources[end].label == sources[begin].label)
            ++end;
        size_t const one = begin + random() % (end - begin);
        for (size_t i = begin; i < end; ++i)
            sources[i].isTaken = takesAll || (number < sample && i == one);
    }
}

// The sources that are taken, and of the others the shortest that hold what no source before them does. A
// file that no case compiles is a failure, if the cases are `all` there are.
std::vector<Source> chosen(std::vector<Source> sources, bool all, int& failures)
{
    // Searchers skip by the length of what they look for: there are gigabytes of texts.
    std::vector<std::pair<std::string_view, std::boyer_moore_horspool_searcher<char const*>>> left;
    for (cuda::SourceFile const& file : cuda::sourceFiles())
        if (file.path.ends_with(".cuh")) {
            std::string_view const body = bodyOf(file);
            left.emplace_back(file.path, std::boyer_moore_horspool_searcher(body.data(), body.data() + body.size()));
        }
    std::stable_sort(sources.begin(), sources.end(), [&](Source const& a, Source const& b) {
        return a.isTaken != b.isTaken ? a.isTaken : a.text.size() < b.text.size();
    });
    std::vector<Source> list;
    for (Source& s : sources) {
        size_t const before = left.size();
        char const* const begin = s.text.data();
        char const* const end = begin + s.text.size();
        std::erase_if(left, [&](auto const& file) { return std::search(begin, end, file.second) != end; });
        if (s.isTaken || left.size() < before)
            list.push_back(std::move(s));
    }
    for (auto const& [path, body] : left)
        if (all) {
            std::printf("FAILED %s: no case compiles it\n", std::string(path).c_str());
            ++failures;
        }
    return list;
}

// " KERNEL HASH INSTRUCTIONS" of each kernel of an ELF file, where its code is the section ".text.KERNEL".
std::map<std::string, std::string> codeOf(std::string const& cubin)
{
    constexpr size_t kInstruction = 16; // bytes
    auto read = [&](size_t at, size_t bytes) {
        uint64_t v = 0;
        std::memcpy(&v, cubin.data() + at, bytes);
        return size_t(v);
    };
    size_t const headers = read(0x28, 8), each = read(0x3a, 2), count = read(0x3c, 2), named = read(0x3e, 2);
    size_t const names = read(headers + named * each + 0x18, 8);
    std::map<std::string, std::string> list;
    for (size_t i = 0; i < count; ++i) {
        size_t const header = headers + i * each, at = read(header + 0x18, 8), size = read(header + 0x20, 8);
        std::string const name = cubin.c_str() + names + read(header, 4);
        char text[64];
        std::snprintf(text, sizeof(text), " %016llx %zu",
                      (unsigned long long)hashBytes(cubin.data() + at, name.starts_with(".text.") ? size : 0),
                      size / kInstruction);
        if (name.starts_with(".text."))
            list[name.substr(6)] = text;
    }
    return list;
}

// A line for each source.
int coded(std::vector<Source> const& sources, cuda::Compiler& compiler, std::string const& path, int failures)
{
    std::FILE* const f = std::fopen(path.c_str(), "w");
    for (Source const& s : sources) {
        auto const made = compiler.compile(s.label, s.text, kArchitectures[s.architecture]);
        if (!f || !made.ok()) {
            std::printf("FAILED %s\n", f ? made.error().message.c_str() : path.c_str());
            return 1;
        }
        auto const code = codeOf((*made)->cubin);
        std::fprintf(f, "%s", s.label.c_str());
        for (cuda::KernelResources const& k : (*made)->kernels)
            std::fprintf(f, " %s%s %d %d", k.kernel.c_str(), code.at(k.kernel).c_str(), k.registers, k.spillBytes);
        std::fprintf(f, "\n");
    }
    if (f)
        std::fclose(f);
    std::printf("%zu sources, %d failed\n", sources.size(), failures);
    return failures ? 1 : 0;
}

// A file for each source.
int dumped(std::vector<Source> const& sources, std::string const& folder, int failures)
{
    for (size_t i = 0; i < sources.size(); ++i) {
        char name[32];
        std::snprintf(name, sizeof(name), "/%06zu.cu", i);
        std::FILE* const f = std::fopen((folder + name).c_str(), "w");
        if (!f) {
            std::printf("FAILED: cannot write to %s\n", folder.c_str());
            return 1;
        }
        std::fprintf(f, "// %s\n%s", sources[i].label.c_str(), sources[i].text.c_str());
        std::fclose(f);
    }
    std::printf("%zu sources, %d failed\n", sources.size(), failures);
    return failures ? 1 : 0;
}

} // namespace

int main(int argc, char** argv)
{
    size_t sample = 60;
    int threads = int(std::max(1U, std::thread::hardware_concurrency()));
    std::time_t const now = std::time(nullptr);
    std::tm day{};
    gmtime_r(&now, &day);
    uint64_t seed = uint64_t((day.tm_year + 1900) * 10000 + (day.tm_mon + 1) * 100 + day.tm_mday);
    std::string filter, report, dump, code;
    for (int i = 1; i < argc; ++i) {
        auto next = [&] { return i + 1 < argc ? argv[++i] : ""; };
        if (!std::strcmp(argv[i], "--all"))
            sample = SIZE_MAX;
        else if (!std::strcmp(argv[i], "--sample"))
            sample = size_t(std::atoll(next()));
        else if (!std::strcmp(argv[i], "--seed"))
            seed = uint64_t(std::atoll(next()));
        else if (!std::strcmp(argv[i], "--filter"))
            filter = next();
        else if (!std::strcmp(argv[i], "--threads"))
            threads = std::clamp(std::atoi(next()), 1, 256);
        else if (!std::strcmp(argv[i], "--report"))
            report = next();
        else if (!std::strcmp(argv[i], "--dump"))
            dump = next();
        else if (!std::strcmp(argv[i], "--code"))
            code = next();
        else {
            fmt::print(stderr, "{}: unknown option; those that there are stand at the top of test/cuda/compile.cpp\n",
                       argv[i]);
            return 2;
        }
    }
    int failures = 0;
    std::vector<test::CudaCase> cases;
    if (!dump.empty()) {
        cases = test::cudaCases(filter, failures, test::Results::kNone);
        return dumped(sourcesOf(cases, failures), dump, failures);
    }
    auto const begin = std::chrono::steady_clock::now();
    auto compiler = cuda::Compiler::open(test::testSearchPath());
    if (!compiler.ok()) {
        std::printf("skipped: %s\n", compiler.error().message.c_str());
        return 77;
    }
    cases = test::cudaCases(filter, failures, test::Results::kNone);
    if (!code.empty())
        return coded(sourcesOf(cases, failures), **compiler, code, failures);
    size_t const all = cases.size();
    std::shuffle(cases.begin(), cases.end(), std::mt19937_64(seed));
    std::vector<Source> sources = sourcesOf(cases, failures);
    takeSample(sources, sample, seed);
    sources = chosen(std::move(sources), filter.empty(), failures);
    // The long ones first: threads end together.
    std::stable_sort(sources.begin(), sources.end(),
                     [](Source const& a, Source const& b) { return a.text.size() > b.text.size(); });
    std::map<std::string, Total[std::size(kArchitectures)]> totals; // by tactic
    std::mutex mutex;
    std::atomic<size_t> next{0};
    auto work = [&] {
        for (size_t i; (i = next++) < sources.size();) {
            Source const& source = sources[i];
            auto const made = (*compiler)->compile(source.label, source.text, kArchitectures[source.architecture]);
            std::lock_guard lock(mutex);
            if (!made.ok()) {
                std::printf("FAILED %s\n", made.error().message.c_str());
                ++failures;
                continue;
            }
            Total& total = totals[source.tactic][source.architecture];
            total.seconds += (*made)->seconds;
            for (cuda::KernelResources const& k : (*made)->kernels) {
                ++total.kernels;
                total.spilling += k.spillBytes > 0;
                total.mostRegisters = std::max(total.mostRegisters, k.registers);
            }
        }
    };
    std::vector<std::thread> pool;
    for (int i = 0; i < threads; ++i)
        pool.emplace_back(work);
    for (std::thread& t : pool)
        t.join();

    char line[256];
    std::snprintf(line, sizeof(line), "%-40s %27s %29s\n", "kernels, most registers, spilling, seconds", "sm_80",
                  "sm_90a");
    std::string text = line;
    Total sum;
    for (auto const& [tactic, of] : totals) {
        std::snprintf(line, sizeof(line), "%-40s", tactic.c_str());
        text += line;
        for (Total const& t : of) {
            std::snprintf(line, sizeof(line), "  %5d %5d %5d %7.2f s", t.kernels, t.mostRegisters, t.spilling,
                          t.seconds);
            text += line;
            sum.kernels += t.kernels;
            sum.spilling += t.spilling;
            sum.seconds += t.seconds;
        }
        text += "\n";
    }
    std::snprintf(line, sizeof(line),
                  "%zu of %zu cases (seed %llu): %zu sources, %d kernels compiled, %d spill, %.1f s in %d threads, "
                  "%.1f s in all; %d failed\n",
                  std::min(sample, all), all, (unsigned long long)seed, (*compiler)->compiledCount(), sum.kernels,
                  sum.spilling, sum.seconds, threads,
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), failures);
    text += line;
    std::printf("%s", text.c_str());
    if (!report.empty())
        if (std::FILE* f = std::fopen(report.c_str(), "w")) {
            std::fputs(text.c_str(), f);
            std::fclose(f);
        }
    return failures ? 1 : 0;
}

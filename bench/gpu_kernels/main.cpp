// SPDX-License-Identifier: Apache-2.0
// gpu_kernels --compile FOLDER [word]: makes every kernel's cubin there, without a GPU, and prints what the assembler
// said. gpu_kernels --run FOLDER [word]: checks and times them on GPU 0; a table last, JSON in the folder that $OUT
// names. `word` keeps the cases whose name has it.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "harness.h"
#include "kernels/cuda/common/source.h"

namespace bench {

namespace {

int compileAll(std::vector<Case> const& cases, std::string const& folder)
{
    cuda::SearchPath path;
    path.after = {"/usr/local/cuda/lib64"};
    auto compiler = cuda::Compiler::open(path);
    if (!compiler) {
        std::printf("%s\n", compiler.error().message.c_str());
        return 1;
    }
    std::map<std::string, Kernel> kernels; // by source
    for (Case const& c : cases)
        for (Kernel const& k : c.kernels)
            kernels.emplace(k.source, k);
    std::vector<Kernel> list;
    for (auto const& [source, k] : kernels)
        list.push_back(k);
    std::atomic<size_t> next{0};
    std::atomic<int> bad{0};
    std::mutex mutex;
    auto work = [&] {
        for (size_t i; (i = next++) < list.size();) {
            std::string const file = fileOf(folder, list[i].source);
            if (std::ifstream(file))
                continue; // as before
            auto made = (*compiler)->compile(list[i].label, cuda::withIncludes(list[i].source), "sm_90a");
            std::lock_guard lock(mutex);
            if (!made) {
                std::printf("%s\n", made.error().message.c_str());
                ++bad;
                continue;
            }
            for (cuda::KernelResources const& r : (*made)->kernels) {
                std::printf("%3d registers, %d bytes spilled, %.2f s: %s\n", r.registers, r.spillBytes,
                            (*made)->seconds, list[i].label.c_str());
                if (r.spillBytes)
                    ++bad;
            }
            std::fflush(stdout);
            if (!(std::ofstream(file, std::ios::binary) << (*made)->cubin)) {
                std::printf("%s cannot be written\n", file.c_str());
                ++bad;
            }
        }
    };
    std::thread other(work);
    work();
    other.join();
    std::printf("%zu kernels, %d bad\n", list.size(), bad.load());
    return bad ? 1 : 0;
}

int runAll(std::vector<Case> const& cases, std::string const& folder)
{
    auto gpu = Gpu::open(folder);
    if (!gpu) {
        std::printf("%s\n", gpu.error().message.c_str());
        return 1;
    }
    std::vector<Row> rows;
    int failed = 0;
    for (Case const& c : cases) {
        std::printf("%s\n", c.label.c_str());
        std::fflush(stdout); // names the case when a kernel hangs
        auto row = c.run(**gpu);
        if (!row) {
            std::printf("FAILED %s: %s\n", c.label.c_str(), row.error().message.c_str());
            return 1; // the context is lost
        }
        failed += row->failed;
        rows.push_back(*row);
        (*gpu)->clear();
    }
    char const* const out = std::getenv("OUT");
    std::ofstream json(std::string(out ? out : ".") + "/gpu_kernels.json");
    json << "{\"gpu\": \"" << (*gpu)->name() << "\", \"rows\": [\n";
    for (size_t i = 0; i < rows.size(); ++i)
        json << "{\"case\": \"" << rows[i].label << "\", \"us\": " << rows[i].us
             << ", \"teraflops\": " << rows[i].teraflops << ", \"gigabytes_per_s\": " << rows[i].gigabytes
             << ", \"library_us\": " << rows[i].libraryUs << ", \"error\": " << rows[i].error
             << ", \"checked\": " << (rows[i].checked && !rows[i].failed ? "true" : "false") << "}"
             << (i + 1 < rows.size() ? ",\n" : "\n");
    json << "]}\n";
    std::printf("\n%s\n%8s %7s %6s %8s %8s\n", (*gpu)->name().c_str(), "us", "TF/s", "GB/s", "library", "error");
    for (Row const& r : rows)
        if (r.us > 0 || r.failed)
            std::printf("%8.2f %7.1f %6.0f %8.2f %8.1e %s%s\n", r.us, r.teraflops, r.gigabytes, r.libraryUs, r.error,
                        r.failed ? "FAILED " : "", r.label.c_str());
    std::printf("%zu cases, %d failed\n", rows.size(), failed);
    return failed ? 1 : 0;
}

} // namespace

} // namespace bench

int main(int argc, char** argv)
{
    int share = 0, shares = 1;
    bool const isCall = argc >= 3 && (!std::strcmp(argv[1], "--compile") || !std::strcmp(argv[1], "--run"));
    if (!isCall || argc > 5 ||
        (argc == 5 && (std::sscanf(argv[4], "%d/%d", &share, &shares) != 2 || share < 0 || share >= shares))) {
        std::printf("usage: gpu_kernels --compile|--run FOLDER [word [I/N]]\n"
                    "I/N: of N shares the one I (from 0); kernels of one problem stay together\n");
        return 2;
    }
    std::vector<bench::Case> all, cases;
    bench::gemmCases(all);
    bench::gemmInt8Cases(all);
    bench::attentionCases(all);
    bench::stemCases(all);
    bench::convCases(all);
    bench::sparseCases(all);
    std::string problem; // a label without its last word, the kernel
    int problems = 0;
    for (bench::Case const& c : all) {
        if (argc >= 4 && c.label.find(argv[3]) == std::string::npos)
            continue;
        if (std::string const of = c.label.substr(0, c.label.rfind(' ')); of != problem || problems == 0) {
            problem = of;
            ++problems;
        }
        if ((problems - 1) % shares == share)
            cases.push_back(c);
    }
    return std::strcmp(argv[1], "--run") ? bench::compileAll(cases, argv[2]) : bench::runAll(cases, argv[2]);
}

// SPDX-License-Identifier: Apache-2.0
// usage: fuzz_replay_<target> [--min-files=N] file or folder...
// Runs a fuzz target over files where there is no libFuzzer: the corpus is part of the ordinary tests.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(uint8_t const* data, size_t size);
extern "C" __attribute__((weak)) int LLVMFuzzerInitialize(int* argc, char*** argv);

namespace fs = std::filesystem;

int main(int argc, char** argv)
{
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    std::vector<fs::path> files;
    size_t wanted = 1;
    for (int i = 1; i < argc; ++i) {
        if (std::strncmp(argv[i], "--min-files=", 12) == 0) {
            wanted = size_t(std::atoi(argv[i] + 12));
        } else if (fs::is_directory(argv[i])) {
            for (auto const& e : fs::recursive_directory_iterator(argv[i]))
                if (e.is_regular_file())
                    files.push_back(e.path());
        } else if (fs::exists(argv[i])) {
            files.push_back(argv[i]);
        } else {
            std::fprintf(stderr, "replay: %s does not exist\n", argv[i]);
            return 1;
        }
    }
    std::sort(files.begin(), files.end());
    for (fs::path const& path : files) {
        std::ifstream in(path, std::ios::binary);
        std::string const bytes((std::istreambuf_iterator<char>(in)), {});
        // The name first: after a crash it is the last line.
        std::printf("%s (%zu bytes)\n", path.c_str(), bytes.size());
        std::fflush(stdout);
        LLVMFuzzerTestOneInput(reinterpret_cast<uint8_t const*>(bytes.data()), bytes.size());
    }
    std::printf("%zu files\n", files.size());
    if (files.size() < wanted) {
        std::fprintf(stderr, "replay: %zu files, at least %zu wanted\n", files.size(), wanted);
        return 1;
    }
    return 0;
}

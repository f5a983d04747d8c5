// SPDX-License-Identifier: Apache-2.0
// usage: onnx_backend_cases <data> <exclusions.txt> <floors.txt> [--filter=GLOB] [--parse-only] [--verbose] [--all]
//                           [--report=FILE] [--jobs=N] [--changed=ROUNDS [--build]] [--seed=N] [--set=NAME]
// Runs the ONNX backend cases below <data> (node, simple, pytorch-operator, pytorch-converted), each in a process of
// its own with a time limit. A case passes, is excluded with a reason, or fails. It is an error when a case fails, when
// an excluded case passes (the exclusion is stale), crashes or runs out of time, when an exclusion matches no case or
// its reason does not hold for the model, and when a count falls below its floor, which is called NAME.<count> for a set
// with a name. --filter looks at some cases and checks no floors.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

#include <dirent.h>
#include <fnmatch.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case_run.h"

namespace {

using tw::test::CaseResult;

constexpr int kTimeLimitS = 60;

struct Exclusion
{
    std::string pattern, kind, detail; // kind: 8.5-rule, later-op, type, digits
    int line = 0, matches = 0;
};

struct Case
{
    std::string name; // node/test_abs
    Exclusion* exclusion = nullptr;
    CaseResult result;
    bool crashed = false;
};

std::string trim(std::string const& s)
{
    size_t const from = s.find_first_not_of(" \t\r"), to = s.find_last_not_of(" \t\r");
    return from == std::string::npos ? std::string() : s.substr(from, to - from + 1);
}

// Lines "pattern | kind: detail"; # starts a comment line.
bool readExclusions(char const* path, std::vector<Exclusion>& list)
{
    std::ifstream file(path);
    std::string text;
    for (int line = 1; std::getline(file, text); ++line) {
        text = trim(text);
        if (text.empty() || text[0] == '#')
            continue;
        size_t const bar = text.find('|'), colon = text.find(':', bar == std::string::npos ? 0 : bar);
        Exclusion e;
        if (bar != std::string::npos && colon != std::string::npos) {
            e.pattern = trim(text.substr(0, bar));
            e.kind = trim(text.substr(bar + 1, colon - bar - 1));
            e.detail = trim(text.substr(colon + 1));
        }
        e.line = line;
        if ((e.kind != "8.5-rule" && e.kind != "later-op" && e.kind != "type" && e.kind != "digits") ||
            e.detail.empty()) {
            std::fprintf(stderr, "%s:%d: expected 'pattern | 8.5-rule, later-op, type or digits: detail'\n", path,
                         line);
            return false;
        }
        list.push_back(e);
    }
    return file.eof();
}

std::vector<std::string> folders(std::string const& path)
{
    std::vector<std::string> names;
    if (DIR* d = ::opendir(path.c_str())) {
        while (dirent* e = ::readdir(d))
            if (std::strncmp(e->d_name, "test_", 5) == 0)
                names.emplace_back(e->d_name);
        ::closedir(d);
    }
    std::sort(names.begin(), names.end());
    return names;
}

// Empty when the exclusion's reason is true for the model.
std::string checkReason(Exclusion const& e, std::string const& folder)
{
    auto listed = [&](std::set<std::string> const& have) {
        std::istringstream words(e.detail);
        std::string word;
        words >> word;
        return have.count(word) != 0;
    };
    tw::test::CaseFacts const facts = tw::test::factsOf(folder);
    if (e.kind == "later-op" && !listed(facts.ops))
        return "the model has no operator " + e.detail;
    if (e.kind == "type" && !listed(facts.types))
        return "the model has no type " + e.detail;
    return {};
}

struct Running
{
    pid_t pid;
    int pipe;
    size_t index;
};

CaseResult decode(std::string const& text)
{
    size_t const a = text.find('\n'), b = text.find('\n', a + 1);
    if (a == std::string::npos || b == std::string::npos)
        return {false, "crash", "the process wrote no result"};
    return {text.substr(0, a) == "pass", text.substr(a + 1, b - a - 1), text.substr(b + 1)};
}

} // namespace

int main(int argc, char** argv)
{
    if (argc < 4) {
        std::fprintf(stderr, "usage: %s <data> <exclusions.txt> <floors.txt> [options]\n", argv[0]);
        return 2;
    }
    std::string const data = argv[1];
    std::string filter, report, set;
    bool parseOnly = false, verbose = false, all = false, build = false;
    int jobs = 2, changed = 0;
    unsigned seed = 1;
    for (int i = 4; i < argc; ++i) {
        std::string const a = argv[i];
        if (a.rfind("--filter=", 0) == 0)
            filter = a.substr(9);
        else if (a.rfind("--report=", 0) == 0)
            report = a.substr(9);
        else if (a.rfind("--set=", 0) == 0)
            set = a.substr(6) + ".";
        else if (a.rfind("--jobs=", 0) == 0)
            jobs = std::max(1, std::atoi(a.c_str() + 7));
        else if (a.rfind("--changed=", 0) == 0)
            changed = std::atoi(a.c_str() + 10);
        else if (a.rfind("--seed=", 0) == 0)
            seed = unsigned(std::atoi(a.c_str() + 7));
        else if (a == "--build")
            build = true;
        else if (a == "--parse-only")
            parseOnly = true;
        else if (a == "--verbose")
            verbose = true;
        else if (a == "--all")
            all = true; // print every case
        else
            return std::fprintf(stderr, "unknown option %s\n", argv[i]), 2;
    }
    // The parser reads it when it is made: with it QLinearConv and its like are imported.
    ::setenv("TENSORWRIGHT_ONNX_QUANTIZED_OPS", "1", 1);
    std::vector<Exclusion> exclusions;
    if (!readExclusions(argv[2], exclusions))
        return 2;

    std::vector<Case> cases;
    for (char const* group : {"node", "simple", "pytorch-operator", "pytorch-converted"})
        for (std::string const& folder : folders(data + "/" + group)) {
            Case c;
            c.name = std::string(group) + "/" + folder;
            if (!filter.empty() && fnmatch(filter.c_str(), c.name.c_str(), 0) != 0)
                continue;
            for (Exclusion& e : exclusions)
                if (fnmatch(e.pattern.c_str(), c.name.c_str(), 0) == 0) {
                    ++e.matches;
                    if (!c.exclusion)
                        c.exclusion = &e;
                }
            cases.push_back(c);
        }

    std::vector<Running> running;
    size_t next = 0;
    while (next < cases.size() || !running.empty()) {
        while (next < cases.size() && int(running.size()) < jobs) {
            int fds[2];
            std::fflush(nullptr);
            if (::pipe(fds) != 0)
                return 2;
            pid_t const pid = ::fork();
            if (pid == 0) {
                ::close(fds[0]);
                ::alarm(kTimeLimitS);
                std::string const folder = data + "/" + cases[next].name;
                CaseResult r;
                if (changed > 0)
                    r = {true, std::to_string(tw::test::runChanged(folder, changed, seed + unsigned(next), build)), ""};
                else
                    r = tw::test::runCase(folder, parseOnly, verbose);
                std::string text = std::string(r.passed ? "pass" : "fail") + "\n" + r.stage + "\n" + r.message;
                text.resize(std::min<size_t>(text.size(), 4000)); // below what a pipe holds
                bool const ok = ::write(fds[1], text.data(), text.size()) == ssize_t(text.size());
                ::_exit(ok ? 0 : 3);
            }
            ::close(fds[1]);
            if (pid < 0)
                return 2;
            running.push_back({pid, fds[0], next++});
        }
        int status = 0;
        pid_t const pid = ::waitpid(-1, &status, 0);
        auto it = std::find_if(running.begin(), running.end(), [&](Running const& r) { return r.pid == pid; });
        if (it == running.end())
            continue;
        std::string text(4096, '\0');
        ssize_t const n = ::read(it->pipe, text.data(), text.size());
        text.resize(size_t(std::max<ssize_t>(n, 0)));
        ::close(it->pipe);
        Case& c = cases[it->index];
        c.result = decode(text);
        if (WIFSIGNALED(status)) {
            c.crashed = true;
            c.result = {false, "crash",
                        WTERMSIG(status) == SIGALRM ? "no end after " + std::to_string(kTimeLimitS) + " s"
                                                    : "signal " + std::to_string(WTERMSIG(status))};
        } else if (c.result.stage == "crash") {
            c.crashed = true;
        }
        running.erase(it);
    }

    if (changed > 0) {
        int crashed = 0, refused = 0;
        for (size_t i = 0; i < cases.size(); ++i) {
            if (cases[i].crashed) {
                ++crashed;
                std::printf("CRASHED   %s: %s (--filter=%s --changed=%d --seed=%u)\n", cases[i].name.c_str(),
                            cases[i].result.message.c_str(), cases[i].name.c_str(), changed, seed + unsigned(i));
            }
            refused += std::atoi(cases[i].result.stage.c_str());
        }
        std::printf("models %zu, copies %zu, refused %d, crashed %d\n", cases.size(), cases.size() * size_t(changed),
                    refused, crashed);
        return crashed ? 1 : 0;
    }
    int passed = 0, baked = 0, failed = 0, problems = 0;
    std::map<std::string, int> excluded;
    for (Case& c : cases) {
        std::string const why = "[" + c.result.stage + "] " + c.result.message;
        if (c.exclusion && !c.crashed) {
            ++excluded[c.exclusion->kind];
            if (c.result.passed && !parseOnly) {
                std::printf("STALE     %s passes, but %s:%d excludes it\n", c.name.c_str(), argv[2], c.exclusion->line);
                ++problems;
            } else if (std::string const wrong = checkReason(*c.exclusion, data + "/" + c.name); !wrong.empty()) {
                std::printf("REASON    %s: %s:%d: %s\n", c.name.c_str(), argv[2], c.exclusion->line, wrong.c_str());
                ++problems;
            } else if (all) {
                std::printf("excluded  %s: %s: %s %s\n", c.name.c_str(), c.exclusion->kind.c_str(),
                            c.exclusion->detail.c_str(), why.c_str());
            }
        } else if (c.result.passed) {
            ++passed;
            baked += c.result.stage == "baked";
            if (all)
                std::printf("passed    %s\n", c.name.c_str());
        } else {
            ++failed;
            std::printf("FAILED    %s: %s\n", c.name.c_str(), why.c_str());
        }
    }
    if (filter.empty())
        for (Exclusion const& e : exclusions)
            if (e.matches == 0) {
                std::printf("UNUSED    %s:%d: '%s' fits no case\n", argv[2], e.line, e.pattern.c_str());
                ++problems;
            }

    std::ostringstream summary;
    summary << "cases " << cases.size() << "\npassed " << passed << " (" << baked
            << " of them with inputs given as initializers, which 8.5 demands there)\nfailed " << failed << "\n";
    for (auto const& [kind, count] : excluded)
        summary << "excluded (" << kind << ") " << count << "\n";
    std::fputs(summary.str().c_str(), stdout);
    if (!report.empty())
        std::ofstream(report) << (set.empty() ? "" : "set " + set.substr(0, set.size() - 1) + "\n") << summary.str();

    if (filter.empty() && !parseOnly) {
        std::ifstream floors(argv[3]);
        std::string line;
        std::map<std::string, int> have{{set + "cases", int(cases.size())}, {set + "passed", passed}};
        while (std::getline(floors, line)) {
            line = trim(line);
            if (line.empty() || line[0] == '#')
                continue;
            std::istringstream words(line);
            std::string name;
            int floor = -1;
            words >> name >> floor;
            if (name.substr(0, name.find('.') + 1) != set)
                continue; // of another set
            auto it = have.find(name);
            if (it == have.end() || floor < 0 || it->second < floor) {
                std::printf("FLOOR     '%s' is not reached\n", line.c_str());
                ++problems;
            }
            if (it != have.end())
                have.erase(it);
        }
        for (auto const& [name, count] : have) {
            std::printf("FLOOR     %s (%d) has none in %s\n", name.c_str(), count, argv[3]);
            ++problems;
        }
    }
    return failed || problems ? 1 : 0;
}

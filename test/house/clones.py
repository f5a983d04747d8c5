#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: clones.py [FOLDER] [--commit COMMIT] [--list] [--folders]        (FOLDER below the root: src when not given)

Counts clone pairs in the C++ and CUDA sources of a folder: pairs of places of which 8 or more consecutive lines have the same shape.

A line's shape is what is left of it without comments and white space when every name, string and number is masked; keywords and
punctuation stay. Passed over, so that they neither count nor interrupt: blank lines, comments, punctuation alone, includes, `#pragma NAME`,
the opening of a namespace, `using namespace`, and what names the rows of a table: labels of cases, enumerators with a number, designated
initializers (`.name = ...`). Lines are compared as they stand: a statement that one place breaks over two lines differs from the same on one.
A pair is a maximal run: one line longer it would not agree. Its lines have 6 shapes or more, so that enumerations, tables and rows of the
same call are no clones. The two places do not overlap; of runs of the same two files that overlap on both sides the longest counts alone.
A piece that stands in n places is n (n - 1) / 2 pairs.

    --commit COMMIT   the tree of that commit in place of the working tree
    --list            the pairs, longest first: lines that count, FILE:FIRST-LAST of both places
    --folders         how many pairs each two folders have
    --self-test       plants clones in a temporary tree and counts them
"""
import argparse
import collections
import io
import itertools
import pathlib
import re
import string
import subprocess
import sys
import tarfile
import tempfile

import house

LEAST, SHAPES = 8, 6
KEYWORDS = frozenset(
    """alignas alignof asm auto bool break case catch char class const const_cast constexpr continue decltype default delete do double
    dynamic_cast else enum explicit extern false float for friend goto if inline int long mutable namespace new noexcept nullptr operator
    private protected public reinterpret_cast return short signed sizeof static static_assert static_cast struct switch template this throw
    true try typedef typename union unsigned using virtual void volatile while""".split()
)
TOKEN = re.compile(
    r"""(?P<skip>//[^\n]*|/\*.*?\*/|[ \t\r\f\v]+|\\\n)|(?P<line>\n)"""
    r"""|(?P<text>(?:u8|[uUL])?R"(?P<end>[^(\s]*)\(.*?\)(?P=end)"|(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')"""
    r"""|(?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)|(?P<name>[A-Za-z_]\w*)|(?P<other>.)""",
    re.DOTALL,
)
# By shape: punctuation alone, what opens a file, and what names the rows of a table.
PASSED_OVER = re.compile(r"[^\w]*|#x[<s].*|#xx|using namespace .*|(?:inline )?namespace [^=]*|case .*:|default :|\.x=.*|x=0,?")


def shapes(text):
    """[(number of the line, its shape)] of the lines that count."""
    found, number, shape = [], 1, []
    for token in TOKEN.finditer(text + "\n"):
        kind, value = token.lastgroup, token[0]
        if kind == "line":
            line = "".join(shape)
            if not PASSED_OVER.fullmatch(line):
                found.append((number, line))
            number, shape = number + 1, []
        elif kind == "skip":
            number += value.count("\n")
        else:
            name = value + " " if value in KEYWORDS else "x"
            shape.append({"name": name, "number": "0", "other": value}.get(kind, "s"))
            number += value.count("\n")
    return found


def clones(sources):
    """sources: [(name, text)]. [(lines, (name, first, last), (name, first, last))], longest first."""
    places, lines, ids = [], [], {}  # all files one behind the other, between them a line like no other
    for file, (name, text) in enumerate(sources):
        for number, shape in shapes(text):
            places.append((name, number))
            lines.append(ids.setdefault(shape, len(ids)))
        places.append((name, 0))
        lines.append(-1 - file)
    windows = collections.defaultdict(list)
    for i in range(len(lines) - LEAST + 1):
        window = tuple(lines[i:i + LEAST])
        if min(window) >= 0:
            windows[window].append(i)
    runs = []
    for starts in windows.values():
        for a, b in itertools.combinations(starts, 2):
            if a > 0 and lines[a - 1] == lines[b - 1]:
                continue  # the run begins before
            length = LEAST
            while b + length < len(lines) and lines[a + length] == lines[b + length]:
                length += 1
            for begin in range(0, length, b - a):  # what stands several times in a row agrees with itself, shifted
                part = min(b - a, length - begin)
                if part >= LEAST and len(set(lines[a + begin:a + begin + part])) >= SHAPES:
                    runs.append((part, a + begin, b + begin))
    pairs, taken = [], collections.defaultdict(list)
    for length, a, b in sorted(runs, key=lambda run: (-run[0], run[1:])):
        of = taken[places[a][0], places[b][0]]
        if not any(a < c + n and c < a + length and b < d + n and d < b + length for n, c, d in of):
            of.append((length, a, b))
            pairs.append((length, *((*places[at], places[at + length - 1][1]) for at in (a, b))))
    return pairs


def sources_of(root, folder, commit=None):
    if commit is None:
        return [(str(path), house.text(root / path)) for path in house.files(root)
                if path.suffix in house.CPP and path.is_relative_to(folder)]
    archive = subprocess.run(["git", "-C", str(root), "archive", commit, folder], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        paths = sorted(pathlib.PurePosixPath(member.name) for member in tar if member.isfile())
        return [(str(path), tar.extractfile(str(path)).read().decode("utf-8", "replace")) for path in paths if path.suffix in house.CPP]


def report(root, options):
    found = clones(sources_of(root, options.folder, options.commit))
    if options.list:
        for length, *both in found:
            print(f"{length:4}  " + "  ".join(f"{name}:{first}-{last}" for name, first, last in both))
    if options.folders:
        count = collections.Counter(tuple(sorted(str(pathlib.PurePosixPath(name).parent) for name, *_ in both)) for _, *both in found)
        for folders, pairs in sorted(count.items(), key=lambda item: (-item[1], item[0])):
            print(f"{pairs:4}  " + "  ".join(dict.fromkeys(folders)))
    print(f"{len(found)} clone pairs of {LEAST} lines and more in {options.folder}" + (f" at {options.commit}" if options.commit else ""))


# A function of 10 lines that count, with names, numbers and a string to be replaced.
PIECE = """
float $f(float const* $x, int n)
{
    if ($x == nullptr)
        throw std::runtime_error("$f");
    float $s = 0; // a comment of $f
    for (int i = 0; i < n; ++i) {
        $s += $x[i] * 2.5f;
        /* and one
           of two lines */
        $s = std::min($s, 1e-3f);
    }
    while ($s > n)
        $s /= 2;
    return $s;
}
"""
OTHER = "\n".join(f"int f{i}({'int, ' * i}int x)\n{{\n    return x {'+ x' * i};\n}}" for i in range(20))
TABLE = "char const* f(int n)\n{\n    switch (n) {\n" + "\n".join(f"    case {i}:\n        return \"{i}\";" for i in range(40)) + "\n    }\n}\n"
ENUM = "enum class $f {\n" + "\n".join(f"k{i} = {i}," for i in range(40)) + "\n};\n"


def self_test(root):
    def piece(f, x, s):
        return string.Template(PIECE).substitute(f=f, x=x, s=s)

    def expect(*wanted):
        found = clones(sources_of(root, "src"))
        if [(length, a[0], b[0]) for length, a, b in found] != list(wanted):
            sys.exit(f"self-test: expected {wanted}, found {found}")

    house.plant(root, "src/a/sum.cpp", OTHER + piece("sum", "x", "s"))
    for name in ("src/a/table.cpp", "src/b/table.cpp"):
        house.plant(root, name, TABLE)
        house.plant(root, name.replace(".cpp", ".h"), ENUM)
    house.plant(root, "src/b/text.md", piece("sum", "x", "s"))
    expect()
    house.plant(root, "src/b/same.cpp", piece("sum", "x", "s") + "int last;\n")  # as it stands
    expect((10, "src/a/sum.cpp", "src/b/same.cpp"))
    renamed = piece("total", "from", "result").replace("2.5f", "0x10").replace("    ", "\t").replace("{\n", "{\n\n")
    house.plant(root, "src/b/same.cpp", renamed)
    expect((10, "src/a/sum.cpp", "src/b/same.cpp"))
    house.plant(root, "src/b/same.cpp", piece("sum", "x", "s").replace("while (s > n)", "do").replace("+=", "-="))  # other code
    expect()
    house.plant(root, "src/b/same.cpp", piece("sum", "x", "s").replace("return s", "return -s"))  # the last of 10 lines differs
    expect((9, "src/a/sum.cpp", "src/b/same.cpp"))
    house.plant(root, "src/b/same.cpp", "".join(piece(f, "x", "s") for f in "fgh"))  # within a file: four places, six pairs
    expect(*[(10, "src/a/sum.cpp", "src/b/same.cpp")] * 3, *[(10, "src/b/same.cpp", "src/b/same.cpp")] * 3)
    git = ["git", "-C", str(root), "-c", "user.name=x", "-c", "user.email=x", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "--no-verify", "-m", "x"]):
        subprocess.run([*git, *command], check=True)
    now = clones(sources_of(root, "src"))
    house.plant(root, "src/b/same.cpp", "")
    if clones(sources_of(root, "src", "HEAD")) != now or clones(sources_of(root, "src")):
        sys.exit("self-test: --commit reads the working tree")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder", nargs="?", default="src")
    parser.add_argument("--root", type=pathlib.Path, default=house.ROOT)
    parser.add_argument("--commit")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--folders", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        with tempfile.TemporaryDirectory() as folder:
            self_test(pathlib.Path(folder))
        print("clones: the self-test counts every planted clone")
    else:
        report(options.root, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""What the house checks share: the list of source files, the report, and the self-test on a planted tree.

A check is a script with `check(root, options) -> list of findings`. `run()` gives it the command line:

    CHECK.py [--root DIR] [options]   prints each finding, ends with status 1 if there is one
    CHECK.py --self-test              plants violations in a temporary tree and sees each one caught
"""
import argparse
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOT_OURS = {".git", ".venv", "build", "__pycache__"}
CPP = {".h", ".cpp", ".cuh", ".cu"}


def files(root):
    """Every file of the tree but build output, sorted, as paths below root: what git tracks or would add, else all."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True
    )
    if listed.returncode == 0 and (root / ".git").exists():
        found = [pathlib.PurePosixPath(os.fsdecode(name)) for name in listed.stdout.split(b"\0") if name]
        found = [path for path in found if (root / path).is_file()]
    else:
        found = [
            pathlib.PurePosixPath(path.relative_to(root))
            for path in root.rglob("*")
            if path.is_file() and not NOT_OURS & set(path.relative_to(root).parts)
        ]
    return sorted(set(found))


def built(build, folders, findings):
    """Every program and library in these folders of a build: ELF files that are no links. That there is none is a finding."""
    counted = 0
    for path in sorted(path for folder in folders for path in (build / folder).rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        with open(path, "rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
        counted += 1
        yield path
    if not counted:
        findings.append(f"{build}: has no program and no library; build first")
    print(f"{counted} programs and libraries")


def build_library(source, target, *flags):
    """For self-tests of what is built."""
    command = [*shlex.split(os.environ.get("CXX", "c++")), "-std=c++20", "-shared", "-fPIC", "-o", str(target), str(source), *flags]
    subprocess.run(command, check=True)


def text(path):
    return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")


def plant(root, name, content):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


def expect(findings, *needles):
    """For self-tests: as many findings as needles, each needle (a part of one) in its own finding."""
    left = list(findings)
    for needle in needles:
        match = next((finding for finding in left if needle in finding), None)
        if match is None:
            sys.exit(f"self-test: nothing says {needle!r}; the check found {findings}")
        left.remove(match)
    if left:
        sys.exit(f"self-test: more was found than planted: {left}")


def run(check, self_test, *arguments):
    """arguments: (flag, keywords of add_argument) for each option of the check."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    parser.add_argument("--self-test", action="store_true")
    for flag, keywords in arguments:
        parser.add_argument(flag, **keywords)
    options = parser.parse_args()
    name = pathlib.Path(sys.argv[0]).stem
    if options.self_test:
        with tempfile.TemporaryDirectory() as folder:
            self_test(pathlib.Path(folder), options)
        print(f"{name}: the self-test sees every planted violation")
        return 0
    findings = check(options.root, options)
    for finding in findings:
        print(finding)
    print(f"{name}: {len(findings)} finding{'' if len(findings) == 1 else 's'}")
    return 1 if findings else 0

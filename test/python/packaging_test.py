# SPDX-License-Identifier: Apache-2.0
"""What pip's build does around CMake: naming what is missing, and libraries that come into the wheel under names of their own. The whole
wheel is the test python.wheel."""

import ctypes
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import build_backend  # noqa: E402
import bundle  # noqa: E402


def test_what_is_missing_is_named(monkeypatch):
    assert build_backend.missing_packages() == []
    monkeypatch.setitem(build_backend.HEADERS, "no/such.h nor/this.h", "libnone-dev")
    monkeypatch.setitem(build_backend.HEADERS, "no/such.h stdio.h", "libc6-dev")
    monkeypatch.setitem(build_backend.PROGRAMS, "no-such-program", "none-tools")
    for compiler in ("c++", "env c++"):  # a launcher in front, as with ccache
        monkeypatch.setenv("CXX", compiler)
        assert build_backend.missing_packages() == ["libnone-dev", "none-tools"]
    with pytest.raises(SystemExit, match="apt-get install .*libnone-dev none-tools"):
        build_backend.build_wheel("/nowhere")
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert "g++" in build_backend.missing_packages()


def library(path, source, *options):
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", "-o", str(path), *map(str, options)]
    subprocess.run(command, input=source, text=True, check=True)
    return path


@pytest.fixture
def tree(tmp_path):
    """Wheel contents: libuser.so, which needs libforeign.so.1 of another folder."""
    root, system = tmp_path / "root", tmp_path / "system"
    for folder in (root / "tensorwright" / "lib", system):
        folder.mkdir(parents=True)
    library(system / "libforeign.so.1", "int foreign_answer(void) { return 42; }", "-Wl,-soname,libforeign.so.1")
    library(
        root / "tensorwright" / "lib" / "libuser.so",
        "int foreign_answer(void); int getpid(void); int user_answer(void) { return getpid() ? foreign_answer() : 0; }",
        system / "libforeign.so.1",
        f"-Wl,-rpath,$ORIGIN:{system}",
    )
    return root


def test_libraries_come_in_under_own_names(tree, tmp_path):
    libraries = tree / "tensorwright" / "lib"
    assert bundle.too_new(tree) == ["libuser.so needs libforeign.so.1"]
    assert bundle.bundle(tree, libraries) == ["libtensorwright-foreign.so.1"]
    assert bundle.too_new(tree) == [] and bundle.bundle(tree, libraries) == []
    shutil.rmtree(tmp_path / "system")
    # Another one of the same name and symbol, for all of the process, does not answer.
    other = library(tmp_path / "libforeign.so.1", "int foreign_answer(void) { return 7; }", "-Wl,-soname,libforeign.so.1")
    script = f"""
import ctypes
other = ctypes.CDLL({str(other)!r}, ctypes.RTLD_GLOBAL)
user = ctypes.CDLL({str(libraries / "libuser.so")!r}, ctypes.RTLD_GLOBAL)
print(user.user_answer(), other.foreign_answer(), ctypes.CDLL(None).foreign_answer())
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "42 7 7\n"
    assert ctypes.CDLL(str(libraries / "libtensorwright-foreign.so.1")).tensorwright_own_foreign_answer() == 42


def test_a_library_that_is_not_there(tree, tmp_path):
    shutil.rmtree(tmp_path / "system")
    with pytest.raises(SystemExit, match="libuser.so needs libforeign.so.1"):
        bundle.bundle(tree, tree / "tensorwright" / "lib")


def test_tags(tree, tmp_path, monkeypatch):
    facts = tree / "thing-1.0.dist-info"
    facts.mkdir()
    (facts / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-linux_x86_64\n")
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
    (facts / "RECORD").write_text("")
    packed = tmp_path / "packed"
    for newest, expected in (((2, 36), bundle.TAG), ((2, 0), "linux_x86_64")):
        subprocess.run([sys.executable, "-m", "wheel", "pack", "-d", tmp_path, tree], check=True, capture_output=True, cwd=tmp_path)
        (wheel,) = tmp_path.glob("thing-*linux_x86_64.whl")
        packed.mkdir()
        monkeypatch.setitem(bundle.NEWEST, "GLIBC", newest)
        name = bundle.finish(shutil.move(wheel, packed))
        assert name == f"thing-1.0-cp311-cp311-{expected}.whl" and [p.name for p in packed.iterdir()] == [name]
        assert "tensorwright/lib/libtensorwright-foreign.so.1" in zipfile.ZipFile(packed / name).namelist()
        shutil.rmtree(packed)

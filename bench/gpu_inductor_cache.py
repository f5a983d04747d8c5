# SPDX-License-Identifier: Apache-2.0
"""What torch.compile found on a GPU, kept from one run of gpu_peers.py to the next: max-autotune takes minutes for a network.

One file for each row (what torch.compiler.save_cache_artifacts() gives), all in one compressed archive, in pieces.
"""
import base64
import os
import pickle
import tarfile

PIECE_BYTES = 14 << 20


def save(path):
    import torch
    saved = torch.compiler.save_cache_artifacts()
    if not saved:
        return
    content = saved[0]
    try:
        content = without_candidates(content)
    except Exception as error:  # inductor's own classes: another version of torch may have others
        print(f"the cache keeps every candidate: {type(error).__name__}: {error}")
    with open(path + ".new", "wb") as file:
        file.write(content)
    os.replace(path + ".new", path)


def load(path):
    """Whether there was something to load."""
    import torch
    if not os.path.exists(path):
        return False
    with open(path, "rb") as file:
        return torch.compiler.load_cache_artifacts(file.read()) is not None


def without_candidates(content):
    """Artifacts with the kernels that the compiled graphs launch, less those that lost: a tenth of the bytes."""
    import torch._inductor.codecache  # registers the artifacts' types
    from torch.compiler._cache import CacheArtifactFactory, CacheArtifactManager
    artifacts = CacheArtifactManager.deserialize(content)
    with CacheArtifactManager.with_fresh_cache():
        for kind, entries in artifacts.items():
            for entry in entries:
                value = entry.content
                if kind == "inductor":
                    graph = pickle.loads(value)
                    bundle = graph._triton_bundle
                    used = {base64.b32encode(bytes.fromhex(result.kernel.hash)).decode().rstrip("=")
                            for tuner in bundle.static_autotuners for result in tuner.kernel.compile_results}
                    kept = [kernel for kernel in bundle.kernel_artifacts if kernel.kernel_hash in used]
                    if used and len(kept) == len(used):
                        bundle.kernel_artifacts[:] = kept
                        value = pickle.dumps(graph)
                CacheArtifactManager._new_cache_artifacts[kind].append(CacheArtifactFactory.create(kind, entry.key, value))
        return CacheArtifactManager.serialize()[0]


def unpack(pieces, folder):
    if not pieces:
        return
    whole = os.path.join(folder, "inductor.tar.xz")
    with open(whole, "wb") as out:
        for piece in pieces:
            with open(piece, "rb") as file:
                out.write(file.read())
    with tarfile.open(whole) as tar:
        tar.extractall(folder, filter="data")
    os.remove(whole)


def pack(folder, out):
    whole = os.path.join(folder, "inductor.tar.xz")
    with tarfile.open(whole, "w:xz", preset=2) as tar:
        for name in sorted(os.listdir(folder)):
            if "." not in name:
                tar.add(os.path.join(folder, name), name)
    with open(whole, "rb") as file:
        for i, piece in enumerate(iter(lambda: file.read(PIECE_BYTES), b"")):
            with open(os.path.join(out, f"inductor.tar.xz.{i:02d}"), "wb") as to:
                to.write(piece)

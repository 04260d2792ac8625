"""Go's digest of a module, `h1:`, computed from its folder.

Source: golang.org/x/mod/sumdb/dirhash, Hash1: SHA-256 over one line `sha256  name` for each file, sorted by name,
where a name is `module@version/path`.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path


def hash_module(folder: Path, module: str, version: str) -> str:
    """Return the `h1:` digest of an unpacked module."""
    prefix = f"{module}@{version}/"
    files = {prefix + file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}
    total = hashlib.sha256()
    # Go sorts names by their bytes.
    for name in sorted(files, key=str.encode):
        with files[name].open("rb") as content:
            total.update(f"{hashlib.file_digest(content, 'sha256').hexdigest()}  {name}\n".encode())
    return "h1:" + base64.b64encode(total.digest()).decode()

"""Compiles what every call goes through: a fifth less CPU time in the relay (docs/performance.md).

    python sidecar/compiler/relay_compiler.py FOLDER [PYTHON]

FOLDER holds the relay's packages; beside each module of `MODULES` a library is put, which Python takes in its
place. PYTHON, for which they are made and whose packages their types come from, is this one unless named. It
needs mypy, setuptools and a C compiler, and Python's headers; the relay afterwards needs none of them.

Sources stay as they are, and both forms are tested: tests/unit and tests/property run the sources,
`make integration`, `make conformance` and the pods the compiled form.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGE = "mcp_sidecar"
# On the way of every call, with sessions and without, and the classes made from theirs: one that is
# interpreted cannot inherit from one that is compiled. The rest is called rarely, or waits for others.
MODULES = (
    "core/attribution",
    "core/cancels",
    "core/deadlines",
    "core/frames",
    "core/httptext",
    "core/jsontext",
    "core/lines",
    "core/methods",
    "core/readings",
    "core/sent",
    "session/calls",
    "session/clients",
    "session/inbound",
    "session/modern/bridge",
    "session/modern/calls",
    "session/modern/listeners",
    "session/modern/sessions",
    "session/outbound",
    "session/perclient",
    "session/relay",
    "session/remote",
    "session/shared",
    "session/table",
    "session/upstream",
    "stdio/link",
    "web/admission",
    "web/connection",
    "web/endpoint",
    "web/exchange",
    "web/intake",
    "web/replies",
    "web/sse",
)
NAMES = tuple(f"{PACKAGE}.{module.replace('/', '.')}" for module in MODULES)
"""The same, as Python imports them."""
WORKSHOP = "build"
"""In the folder, for what is made on the way; it is removed."""
# Python takes a source in place of a library that is missing or made for another version, without a word.
_CHECK = """
import importlib, sys
files = [importlib.import_module(name).__file__ for name in sys.argv[1:]]
sys.exit("\\n".join(f"not compiled: {file}" for file in files if file.endswith(".py")) or 0)
"""


def compile_in(folder: Path, python: str) -> None:
    """Compile the modules in a folder of packages.

    Raises:
        subprocess.CalledProcessError: a module cannot be compiled or imported; what is wrong was printed.

    """
    sources = [f"{PACKAGE}/{module}.py" for module in MODULES]
    told = ["--config-file=", f"--cache-dir={WORKSHOP}/types", f"--python-executable={python}"]
    # No symbols: what a pod runs is small, and tracebacks have file and line without them.
    wanted = {**os.environ, "MYPYC_OPT_LEVEL": "3", "MYPYC_DEBUG_LEVEL": "0"}
    subprocess.run([sys.executable, "-m", "mypyc", *told, *sources], cwd=folder, env=wanted, check=True)
    shutil.rmtree(folder / WORKSHOP)
    # No bytecode: how that is written is for the image to say.
    there = {**os.environ, "PYTHONPATH": str(folder.resolve()), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([python, "-c", _CHECK, *NAMES], env=there, check=True)


if __name__ == "__main__":
    compile_in(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else sys.executable)

"""The wheel: it has everything inside, and works away from the tree."""

import os
import subprocess
import sys
import zipfile

import pytest

import remat

pytest.importorskip("wheel")
BUILD = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(remat.__file__))))

CODE = """
import os, remat
graph = remat.Graph()
x = graph.add_tensor(10)
graph.add_action(1, writes=[x])
graph.add_result(x)
assert graph.plan(10).schedule.tolist() == [0]
assert os.path.dirname(remat.doctor().library_path) == os.path.dirname(remat.__file__)
print(remat.__version__, remat.__file__)
"""


def test_a_wheel_works_alone(tmp_path):
    made = subprocess.run(
        ["sh", "scripts/wheel.sh", BUILD, str(tmp_path / "dist")], capture_output=True, text=True, timeout=120
    )
    assert made.returncode == 0, made.stderr
    machine = os.uname().machine
    wheel = tmp_path / "dist" / f"remat-{remat.__version__}-py3-none-linux_{machine}.whl"
    assert made.stdout.strip() == str(wheel)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(f"remat-{remat.__version__}.dist-info/METADATA").decode()
        archive.extractall(tmp_path / "site")
    assert {"remat/libremat.so.0", "remat/_declarations.py", "remat/py.typed"} <= set(names)
    assert not [name for name in names if "__pycache__" in name]
    assert f"Version: {remat.__version__}\n" in metadata and "# Remat for Python" in metadata
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    ran = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == [remat.__version__, str(tmp_path / "site" / "remat" / "__init__.py")]

# SPDX-License-Identifier: Apache-2.0
"""`doctor`: what is there is tried, and for what is not it says what that costs and the command that gets it."""

import json
import os
import shutil
import sys

import pytest

from tilewright.cli import doctor as parts
from tilewright.cli.console import ExitCode

pytestmark = pytest.mark.slow


def distribution(folder, name, version, **files):
    """Write the record of an installed package into a folder that comes first on the path."""
    record = folder / f"{name}-{version}.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    for file, text in files.items():
        (record / file.replace("_json", ".json")).write_text(text)


@pytest.fixture
def ask(start, tmp_path):
    """Return a function that asks a doctor of its own, which finds what is in tmp_path/first before all else."""
    first = tmp_path / "first"
    first.mkdir()

    def call(*arguments, status=0, **environment):
        path = os.pathsep.join(filter(None, [str(first), os.environ.get("PYTHONPATH")]))
        process = start("doctor", *arguments, environment={"PYTHONPATH": path, **environment})
        out, err = process.communicate(timeout=120)
        assert process.returncode == status, out + err
        return out

    call.first = first
    return call


def commands_after(shown, name):
    """Return the cost of what is missing, and the commands below it, as the text shows them."""
    lines = shown.partition("\nmissing: ")[2].partition("\nenvironment")[0].splitlines()[1:]
    at = next(i for i, line in enumerate(lines) if line.split()[:1] == [name])
    cost, commands = [lines[at].strip()], []
    for line in lines[at + 1 :]:
        if line.startswith("    $ "):
            commands.append(line[6:])
        elif line.startswith("     ") and not commands:
            cost.append(line.strip())
        else:
            break
    return " ".join(" ".join(cost).split()), commands


def test_doctor_examines_every_engine(run, monkeypatch):
    from tilewright.copying.engine import ENGINES

    monkeypatch.delenv("TILEWRIGHT_TESTS_OF", raising=False)  # of the matrix: doctor names what nothing reads
    data = run("doctor", "--json").json
    assert [each["name"] for each in data["engines"]] == [name for name in ENGINES if name != "auto"]
    assert all(each["is_right"] or each["unavailable_reason"] for each in data["engines"])
    assert data["machine"]["usable_cores"] >= 1
    shown = run("doctor").out
    assert "results checked" in shown
    for line in shown.splitlines():  # commands, paths and variables are not broken
        assert len(line) <= 80 or line.startswith("    $ ") or len(line.split()) == 1, line


def test_doctor_says_why_the_native_engine_is_missing_and_what_to_do(start):
    done = start("doctor", environment={"TILEWRIGHT_NATIVE": "0"})
    shown, _ = done.communicate(timeout=60)
    assert done.returncode == 0
    assert "native     no" in shown
    assert "unset the variable to use it" in " ".join(shown.split())
    assert "TILEWRIGHT_NATIVE=0" in shown


def test_doctor_reports_an_engine_with_wrong_bits(run, monkeypatch):
    from tilewright.cli import doctor

    monkeypatch.setattr(doctor, "_matches_reference", lambda name: name != "reference")
    assert "WRONG" in run("doctor", status=1).out


def test_doctor_reports_an_engine_that_fails(run, monkeypatch):
    def fails(name):
        raise RuntimeError("the driver is asleep")

    monkeypatch.setattr("tilewright.cli.doctor._matches_reference", fails)
    assert "found, but it fails: RuntimeError: the driver is asleep" in " ".join(run("doctor", status=1).out.split())


@pytest.mark.parametrize("threads", ["3", "many"])
def test_doctor_shows_the_threads_that_were_asked_for(run, monkeypatch, threads):
    monkeypatch.setenv("TILEWRIGHT_THREADS", threads)
    monkeypatch.setattr("tilewright.cli.doctor._matches_reference", lambda name: True)
    expected = "3 threads" if threads == "3" else "TILEWRIGHT_THREADS is not a number of threads"
    assert expected in run("doctor").out


# What is missing


def hide(folder, *names):
    """Make packages impossible to import, as if they were not installed."""
    for name in names:
        (folder / f"{name}.py").write_text(f"raise ModuleNotFoundError(\"No module named '{name}'\", name='{name}')\n")


@pytest.mark.parametrize("name", ["numpy", "ml_dtypes"])
def test_a_missing_requirement_is_named_with_its_cost_and_command(ask, name):
    hide(ask.first, name)
    shown = ask(status=ExitCode.MISSING)
    cost, commands = commands_after(shown, name)
    assert "REQUIRED: " in cost
    assert commands[0].startswith(f"pip install --force-reinstall '{name}>=")
    data = json.loads(ask("--json", status=ExitCode.MISSING))
    assert [(each["name"], each["is_required"]) for each in data["missing"]] == [(name, True)]


def test_an_old_requirement_is_named(ask):
    distribution(ask.first, "numpy", "1.25.2")
    cost, commands = commands_after(ask(status=ExitCode.MISSING), "numpy")
    assert "version 1.25.2 is older than 1.26" in cost
    assert commands == ["pip install --upgrade 'numpy>=1.26'"]


@pytest.mark.parametrize("version", ["1.26", "1.26.4", "2.0.0rc1", "10.0"])
def test_a_new_enough_requirement_is_not(monkeypatch, version):
    monkeypatch.setattr(parts, "installed_version", lambda name: version if name == "numpy" else "99")
    assert list(parts.missing_requirements()) == []


def test_engines_that_are_missing_have_a_cost_and_a_command(ask):
    hide(ask.first, "pyopencl", "cupy")
    shown = ask(TILEWRIGHT_NATIVE="0")
    assert commands_after(shown, "native") == (
        "native copies run in NumPy: the same results, up to 40 times slower",
        ["unset TILEWRIGHT_NATIVE"],
    )
    assert "OpenCL devices" in commands_after(shown, "opencl")[0]
    assert commands_after(shown, "cuda")[1] == ["pip install 'tilewright[cuda]'"]


def test_every_optional_package_has_a_cost_and_a_command(monkeypatch):
    monkeypatch.setattr(parts, "installed_version", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    missing = {each.name: each for each in parts.missing_optional_packages()}
    assert list(missing) == ["zarr", "distributed", "torch"]
    assert all(each.cost and each.commands[0].startswith("pip install ") for each in missing.values())
    assert not any(each.is_required for each in missing.values())
    assert parts.missing_engine("opencl").commands == ("pip install 'tilewright[opencl]'",)


def test_extras_that_are_recommended_exist():
    from importlib import metadata

    offered = set(metadata.metadata("tilewright").get_all("Provides-Extra"))
    commands = [command for _, command in parts._OPTIONAL.values()] + [parts.missing_engine("cuda").commands[0]]
    assert {command.partition("[")[2].partition("]")[0] for command in commands} <= offered


def test_a_device_without_driver_gets_one_for_the_processor(monkeypatch):
    monkeypatch.setattr(parts, "installed_version", lambda name: "2026.1")
    assert parts.missing_engine("opencl").commands == ("pip install 'pyopencl[pocl]'",)
    assert "NVIDIA's driver" in parts.missing_engine("cuda").commands[0]


# The way to the native library


@pytest.fixture
def no_library(monkeypatch):
    """Let nothing in the environment be the reason that there is no library."""
    monkeypatch.delenv("TILEWRIGHT_NATIVE", raising=False)
    monkeypatch.delenv("TILEWRIGHT_LIBRARY", raising=False)


def programs(monkeypatch, *names):
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if name in names else None)


@pytest.mark.parametrize(
    ("found", "first"),
    [
        (["apt-get"], "sudo apt-get install g++"),
        (["xcode-select"], "xcode-select --install"),
        ([], "# install a C++20 compiler (g++ 10, clang 12 or newer)"),
    ],
)
def test_a_compiler_comes_first(no_library, monkeypatch, found, first):
    programs(monkeypatch, *found)
    got = parts.missing_engine("native").commands
    assert len(got) == 2
    assert got[0] == first
    assert got[1].startswith("TILEWRIGHT_NATIVE=1 pip install --force-reinstall --no-deps ")


def test_a_compiler_that_is_there_is_not_asked_for(no_library, monkeypatch):
    programs(monkeypatch, "apt-get", "clang++")
    assert len(parts.missing_engine("native").commands) == 1


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        (None, "--no-binary tilewright tilewright"),
        ('{"url": "file://%s", "dir_info": {}}', "%s"),
        ('{"url": "file://%s", "dir_info": {"editable": true}}', "--editable %s"),
        ('{"url": "file://%s/gone", "dir_info": {}}', ".  # in its source tree"),
        ('{"url": "file://%s/tilewright.whl", "archive_info": {}}', ".  # in its source tree"),
        ('{"url": "https://example.org/tilewright.tar.gz", "archive_info": {}}', ".  # in its source tree"),
        ("not JSON", ".  # in its source tree"),
    ],
)
def test_it_is_built_again_from_where_it_came(no_library, monkeypatch, tmp_path, origin, source):
    files = {} if origin is None else {"direct_url_json": origin.replace("%s", str(tmp_path))}
    (tmp_path / "tilewright.whl").touch()
    distribution(tmp_path, "tilewright", "9.9", **files)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    commands = parts.missing_engine("native").commands[-1]
    assert commands.endswith(f"--no-deps {source.replace('%s', str(tmp_path))}")


def test_another_build_that_was_asked_for_is_the_first_suspect(monkeypatch):
    monkeypatch.delenv("TILEWRIGHT_NATIVE", raising=False)
    monkeypatch.setenv("TILEWRIGHT_LIBRARY", os.devnull)
    assert parts.missing_engine("native").commands == ("unset TILEWRIGHT_LIBRARY",)


def test_doctor_names_variables_that_nothing_reads(run, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_TREADS", "4")
    (line,) = [line for line in run("doctor").out.splitlines() if "TILEWRIGHT_TREADS" in line]
    assert line.endswith("TILEWRIGHT_TREADS=4, which nothing reads")


def test_a_long_name_and_its_package_are_two_words(run, monkeypatch):
    monkeypatch.setattr(parts, "list_all_plugins", lambda: {"scenes a_plugin.of_a_long_name.Report": "a-plugin 1.0"})
    assert "  scenes a_plugin.of_a_long_name.Report a-plugin 1.0\n" in run("doctor").out

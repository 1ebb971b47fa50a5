"""What a release is made of: the same bytes twice, versions that were tested, a workflow, a recipe."""

import re
import subprocess
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import yaml
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
RELEASE = ROOT / "release"
PROJECTS = {
    file.parent.name: tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    for file in sorted(ROOT.glob("packages/*/pyproject.toml"))
}


def script(name: str):
    """A script of the folder, as a module."""
    spec = spec_from_file_location(f"release_{name}", RELEASE / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def build():
    return script("build")


@pytest.fixture(scope="module")
def dist(build, tmp_path_factory) -> Path:
    """What `make dist` leaves, but for the checks of other programs."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, RELEASE / "build.py", folder], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_a_release_has_a_wheel_and_a_source_archive_of_each(dist, build):
    wanted = {f"{name.replace('-', '_')}-{build.version()}" for name in PROJECTS}
    assert {path.name for path in dist.iterdir()} == (
        {f"{each}{end}" for each in wanted for end in ("-py3-none-any.whl", ".tar.gz")} | {*build.BESIDE}
    )


def test_another_time_gives_other_bytes_and_the_same_time_the_same(dist, build, tmp_path):
    build.built("surepick-server", tmp_path, build.source_time())
    names = {path.name for path in tmp_path.iterdir()}
    assert build.digests(tmp_path) == {name: sha for name, sha in build.digests(dist).items() if name in names}
    build.built("surepick-server", tmp_path, "1700000000")
    assert {build.digests(tmp_path)[name] == build.digests(dist)[name] for name in names} == {False}


def test_a_build_that_differs_ends_the_release(build):
    with pytest.raises(SystemExit, match="a second build differs: b"):
        build.check_same({"a": "1", "b": "2"}, {"a": "1", "b": "3"}, "a second build")


def test_source_archives_have_files_and_no_links(dist):
    import tarfile

    for archive in dist.glob("*.tar.gz"):
        with tarfile.open(archive) as opened:
            members = opened.getmembers()
        assert all(member.isfile() for member in members), archive
        names = {member.name.partition("/")[2] for member in members}
        assert {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO"} <= names
        assert all(name.startswith("src/") for name in names - {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO"})


def test_the_metadata_are_those_that_an_index_takes(dist, build):
    import zipfile

    for wheel in dist.glob("*.whl"):
        with zipfile.ZipFile(wheel) as opened:
            (name,) = (path for path in opened.namelist() if path.endswith("/METADATA"))
            found = Metadata.from_email(opened.read(name), validate=True)
        assert found.version == Version(build.version())
        assert found.description_content_type == "text/markdown"
        assert found.description.startswith(f"# {found.name}\n")


@pytest.mark.parametrize("name", list(PROJECTS))
def test_classifiers_say_the_versions_of_python_that_the_documents_say(name):
    tested = re.search(r"^\| Python \| (.*) \|$", (ROOT / "docs/install.md").read_text(encoding="utf-8"), re.M)[1]
    prefix = "Programming Language :: Python :: 3."
    versions = [line.removeprefix(prefix) for line in PROJECTS[name]["classifiers"] if line.startswith(prefix)]
    assert versions == re.findall(r"3\.(\d+)", tested)
    assert PROJECTS[name]["requires-python"] == f">=3.{versions[0]}"


def test_the_parts_ask_for_the_minor_version_that_they_are_released_with(build):
    major, minor, _ = build.version().split(".")
    wanted = f"<{major}.{int(minor) + 1},>={major}.{minor}"
    for name in ("surepick-server", "surepick-bench"):
        (ours,) = (Requirement(line) for line in PROJECTS[name]["dependencies"] if line.startswith("surepick"))
        assert str(ours.specifier) == wanted


def test_the_version_is_said_in_one_way(build):
    assert f"\nversion: {build.version()}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {build.version()} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_a_tag_that_is_not_the_version_is_refused(build):
    for tag, code in ((f"v{build.version()}", 0), ("v9.9.9", 1)):
        done = subprocess.run(
            [sys.executable, RELEASE / "build.py", "--check", tag], capture_output=True, text=True, check=False
        )
        assert (done.returncode, bool(done.stderr)) == (code, bool(code))


def test_the_oldest_versions_are_the_lower_bounds():
    lines = (line for line in (RELEASE / "oldest.txt").read_text(encoding="utf-8").splitlines() if line[:1] != "#")
    oldest = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    for line in script("needed").requirements():
        needed = Requirement(line)
        (bound,) = (one.version for one in needed.specifier if one.operator == ">=")
        assert canonicalize_name(needed.name) in oldest, f"{line}: make release/oldest.txt anew, as its head says"
        found = Version(oldest[canonicalize_name(needed.name)])
        assert found.release[: len(Version(bound).release)] == Version(bound).release, line


def test_the_recipe_needs_what_the_packages_need():
    recipe = yaml.safe_load((RELEASE / "recipe.yaml").read_text(encoding="utf-8"))
    extras = PROJECTS["surepick"]["optional-dependencies"]
    for output in recipe["outputs"]:
        name = output["package"]["name"]
        needed = [Requirement(line) for line in PROJECTS[name]["dependencies"]]
        with_extras = {*needed} | {
            Requirement(line)
            for one in needed
            if one.name == "surepick"
            for extra in one.extras
            for line in extras[extra]
        }
        wanted = {f"{canonicalize_name(one.name)} {one.specifier}" for one in with_extras if one.name != "surepick"}
        run = {line.replace("_", "-") for line in output["requirements"]["run"] if "{" not in line}
        assert run == wanted, name
        assert output["about"]["license"] == PROJECTS[name]["license"]


def test_the_recipe_is_filled_in(dist, build):
    filled = yaml.safe_load((dist / "recipe.yaml").read_text(encoding="utf-8"))
    assert filled["context"]["version"] == build.version()
    sums = dict(reversed(line.split("  ")) for line in (dist / "SHA256SUMS").read_text(encoding="utf-8").splitlines())
    assert sums == build.digests(dist)
    for output in filled["outputs"]:
        archive = output["source"]["url"].rpartition("/")[2].replace("${{ version }}", build.version())
        assert output["source"]["sha256"] == sums[archive]


@pytest.fixture(scope="module")
def workflow() -> dict:
    return yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))


def test_only_a_tag_is_published_and_only_after_all_tests(workflow):
    jobs = workflow["jobs"]
    assert "startsWith(github.ref, 'refs/tags/v')" in jobs["publish"]["if"]
    assert {*jobs["publish"]["needs"]} == {*jobs} - {"publish"}
    assert workflow[True]["push"]["tags"] == ["v*"]  # YAML reads the word "on" as true


def test_only_the_job_that_publishes_may_sign(workflow):
    assert workflow["permissions"] == {"contents": "read"}
    rights = {name: job.get("permissions") for name, job in workflow["jobs"].items() if "permissions" in job}
    assert rights == {"publish": {"id-token": "write"}}
    (publishing,) = (step for step in workflow["jobs"]["publish"]["steps"] if "pypi-publish" in step["uses"])
    assert publishing["with"]["attestations"] is True
    assert "password" not in publishing["with"]


def test_every_target_that_the_workflow_makes_exists(workflow):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lines = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    targets = [target for line in lines for target in re.findall(r"^make ([\w-]+)", line)]
    assert {"dist", "test", "oldest", "newest"} <= {*targets}
    assert all(re.search(rf"^(?:[\w-]+ )*{target}(?: [\w-]+)*:", makefile, re.M) for target in targets)


def test_a_rehearsal_does_every_command_and_program_of_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    steps = [*script("rehearse").steps(text)]
    commands = [what for kind, what, _ in steps if kind == "sh"]
    assert commands[:4] == ["pip install surepick", "make demo", "make test", "surepick demo --table coffee.csv"]
    assert len(steps) == sum(
        text.count(mark) for mark in ("\npip ", "\nmake ", "\n$ ", "\n```python", "`surepick demo")
    )
    assert all(shown for kind, what, shown in steps if kind == "python" or what.startswith("surepick run"))

"""Which files belong to a scan, under which names."""
from __future__ import annotations

import os
from pathlib import Path

import pytest

from hostlint.discovery import Found, LeftOut, discover
from hostlint.ignores import Globs
from hostlint.project import find_root, module_name


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "pyproject.toml",
        "pkg/__init__.py",
        "pkg/model.py",
        "pkg/model.pyi",
        "pkg/notes.txt",
        "pkg/deep/loop.py",
        "build/made.py",
        "node_modules/x/y.py",
        "train.py",
    ):
        write(tmp_path / name)
    return tmp_path


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def find(root: Path, *paths: str, left_out: LeftOut | None = None, working: Path | None = None) -> Found:
    given = [root / path for path in paths or (".",)]
    return discover([Path(os.path.abspath(path)) for path in given], root, working or root, left_out or LeftOut())


def given(found: Found) -> list[str]:
    return [file.path for file in found.files if file.given]


def test_the_whole_project_is_read_and_the_given_part_reported(tree: Path) -> None:
    found = find(tree, "pkg/deep")
    assert given(found) == ["pkg/deep/loop.py"]
    assert [file.path for file in found.files] == ["pkg/__init__.py", "pkg/deep/loop.py", "pkg/model.py", "pkg/model.pyi", "train.py"]
    assert not found.only_files
    assert found.errors == ()


def test_paths_are_shown_from_the_working_directory(tree: Path) -> None:
    assert given(find(tree, "pkg/deep", working=tree / "pkg")) == ["deep/loop.py"]
    assert given(find(tree, "train.py", working=tree / "pkg")) == ["../train.py"]


def test_a_named_file_is_read_whatever_leaves_it_out(tree: Path) -> None:
    write(tree / ".gitignore", "train.py\n")
    found = find(tree, "build/made.py", "train.py", "pkg/notes.txt")
    assert given(found) == ["build/made.py", "pkg/notes.txt", "train.py"]
    assert found.only_files


def test_a_named_folder_is_read_although_it_is_ignored(tree: Path) -> None:
    write(tree / ".gitignore", "/pkg/deep/\n")
    assert given(find(tree, ".")) == ["pkg/__init__.py", "pkg/model.py", "pkg/model.pyi", "train.py"]
    assert given(find(tree, "pkg/deep")) == ["pkg/deep/loop.py"]
    assert given(find(tree, "build")) == ["build/made.py"]


def test_nested_gitignores_and_the_nearest_word_wins(tree: Path) -> None:
    write(tree / ".gitignore", "# generated\nmodel.py\n*.pyi\n")
    write(tree / "pkg" / ".gitignore", "!model.py\n/deep/*\n")
    assert given(find(tree)) == ["pkg/__init__.py", "pkg/model.py", "train.py"]
    assert len(given(find(tree, left_out=LeftOut(gitignore=False)))) == 5


def test_gitignores_above_the_project_count_up_to_the_repository(tree: Path) -> None:
    inner = tree / "pkg"
    write(tree / ".gitignore", "model.*\n")
    assert given(find(inner)) == ["__init__.py", "deep/loop.py", "model.py", "model.pyi"]
    (tree / ".git").mkdir()
    assert given(find(inner)) == ["__init__.py", "deep/loop.py"]


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("deep", ["pkg/__init__.py", "pkg/model.py", "pkg/model.pyi", "train.py"]),
        ("*.pyi", ["pkg/__init__.py", "pkg/deep/loop.py", "pkg/model.py", "train.py"]),
        ("pkg/*.py", ["pkg/deep/loop.py", "pkg/model.pyi", "train.py"]),
        ("/train.py", ["pkg/__init__.py", "pkg/deep/loop.py", "pkg/model.py", "pkg/model.pyi"]),
        ("pkg/**", ["train.py"]),
    ],
)
def test_exclude_patterns(tree: Path, pattern: str, left: list[str]) -> None:
    assert given(find(tree, left_out=LeftOut((Globs(tree, [pattern]),)))) == left


def test_circles_of_links_end(tree: Path) -> None:
    (tree / "pkg" / "again").symlink_to(tree, target_is_directory=True)
    (tree / "self.py").symlink_to(tree / "self.py")
    (tree / "gone.py").symlink_to(tree / "nowhere.py")
    found = find(tree)
    assert given(found) == ["pkg/__init__.py", "pkg/deep/loop.py", "pkg/model.py", "pkg/model.pyi", "train.py"]
    assert found.errors == ()


def test_a_file_with_two_names_is_read_once(tree: Path) -> None:
    (tree / "a_link.py").symlink_to(tree / "train.py")
    assert "a_link.py" not in given(find(tree))
    assert given(find(tree, "a_link.py")) == ["a_link.py"]
    assert "train.py" not in [file.path for file in find(tree, "a_link.py").files]


def test_what_is_missing_is_an_error_and_the_rest_is_found(tree: Path) -> None:
    (tree / "self.py").symlink_to(tree / "self.py")
    found = find(tree, "missing", "self.py", "train.py", "pkg/deep")
    assert given(found) == ["pkg/deep/loop.py", "train.py"]
    assert [(error.path, error.line) for error in found.errors] == [("missing", 1), ("self.py", 1)]
    assert "no such file" in found.errors[0].message
    assert "links" in found.errors[1].message


@pytest.mark.parametrize(
    ("start", "marker", "root"),
    [
        ("pkg/deep", "pkg/hostlint.toml", "pkg"),
        ("pkg/deep", ".git/HEAD", "."),
        ("pkg/deep", "pkg/pyproject.toml", "pkg"),
        ("pkg/deep/loop.py", "pkg/deep/pyproject.toml", "pkg/deep"),
    ],
)
def test_the_nearest_marker_is_the_root(tree: Path, start: str, marker: str, root: str) -> None:
    write(tree / marker)
    assert find_root([tree / start], tree / "pkg") == tree / root


def test_without_a_marker_the_working_directory_is_the_root(tree: Path) -> None:
    (tree / "pyproject.toml").unlink()
    assert find_root([tree / "pkg" / "deep"], tree) == tree
    assert find_root([tree / "pkg" / "deep"], tree / "build") == tree / "pkg" / "deep"
    assert find_root([tree / "pkg" / "deep", tree / "train.py"], tree / "build") == tree


@pytest.mark.parametrize(
    ("file", "root", "name"),
    [
        ("pkg/__init__.py", ".", "pkg"),
        ("pkg/model.py", ".", "pkg.model"),
        ("pkg/deep/loop.py", ".", "pkg.deep.loop"),
        ("pkg/deep/loop.py", "pkg", "pkg.deep.loop"),
        ("pkg/__init__.py", "pkg", "pkg"),
        ("train.py", ".", "train"),
        ("train.py", "pkg", "train"),
        ("pkg/model.py", "build", "pkg.model"),
    ],
)
def test_module_names(tree: Path, file: str, root: str, name: str) -> None:
    assert module_name(tree / file, Path(os.path.normpath(tree / root))) == name

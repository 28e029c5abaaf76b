"""What a docstring states of a function's parameters stands for annotations that are not there."""
from __future__ import annotations

import textwrap

import pytest

from hostlint.facts.lower import lower_file

STYLES = {
    "one line": ("x (torch.Tensor): the rows", "torch.Tensor"),
    "in small letters": ("x (torch.tensor):\n                the rows", "torch.Tensor"),
    "optional": ("x (torch.Tensor, optional): the rows", "torch.Tensor"),
    "with its shape": ("x (`torch.LongTensor` of shape `(b, n)`, *optional*): ids", "torch.Tensor"),
    "a bare tensor": ("x (Tensor): the rows", "torch.Tensor"),
    "without brackets": ("x: torch.Tensor of rows", "torch.Tensor"),
    "in columns": ("x : np.ndarray\n                the rows", "np.ndarray"),
    "as a reference": ("x (:obj:`torch.FloatTensor`): the rows", "torch.Tensor"),
    "a number": ("x (int): how many", "int"),
    "one of two": ("x (torch.Tensor | np.ndarray): the rows", ""),
    "a list": ("x (list[torch.Tensor]): the rows", ""),
    "a sentence": ("x: integers from a file, as a Tensor would hold them", ""),
    "another name": ("xs (torch.Tensor): the rows", ""),
}


def annotation(source: str) -> str:
    outline = lower_file(textwrap.dedent(source), "main.py", "main").outline
    return outline.functions[1].params[0].annotation


@pytest.mark.parametrize(("stated", "expected"), list(STYLES.values()), ids=list(STYLES))
def test_style(stated: str, expected: str) -> None:
    text = f'def f(x):\n    """Sum.\n\n    Args:\n        {textwrap.dedent(stated)}\n    """\n    return x\n'
    assert annotation(text) == expected


def test_an_annotation_overrules_the_docstring() -> None:
    assert annotation('def f(x: list[int]):\n    """Sum.\n\n    x (torch.Tensor): rows\n    """\n') == "list[int]"


def test_a_function_without_words_or_with_a_number_for_them() -> None:
    assert annotation("def f(x):\n    1\n") == ""
    assert annotation("def f(x):\n    return x\n") == ""

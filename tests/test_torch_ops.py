"""The table of torch: what it says of well-known functions, how its conditions are read, and that its lines are in order."""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from hostlint.facts.kinds import FactKind
from hostlint.torch_ops import function, is_tensor_method, measured_with, method, waiting_names
from hostlint.torch_ops.conditions import TARGET, ArgumentFacts, bind, holds, split_atom, waits_of
from hostlint.torch_ops.spec import Op, Returns
from hostlint.torch_ops.table import FILES, FOLDER, MEASURED_TORCH, index
from hostlint.values.value import Place

DEVICE = ArgumentFacts(Place.DEVICE)
HOST = ArgumentFacts(Place.HOST)
LARGE = ArgumentFacts(Place.HOST, large=True)
LIST_OF_DEVICE = ArgumentFacts(Place.PYTHON, sequence=True, holds_device=True)
NUMBER = ArgumentFacts(Place.PYTHON)
MASK = ArgumentFacts(Place.DEVICE, boolean=True, integer=False, rank0=False)
INTEGERS = ArgumentFacts(Place.DEVICE, boolean=False, integer=True, rank0=False)
ZERO_DIM = ArgumentFacts(Place.DEVICE, boolean=False, integer=True, rank0=True)
TRUE, FALSE, NONE = (ArgumentFacts(Place.PYTHON, literal=text) for text in ("True", "False", "None"))


def every_op() -> Iterator[Op]:
    names = index()
    for name in names.functions:
        if (op := function(name)) is not None:
            yield op
    for name in names.methods:
        if (op := method(name)) is not None:
            yield op


def first_kind(op: Op | None, *positional: ArgumentFacts, to: Place | None = None, **keywords: ArgumentFacts) -> FactKind | None:
    assert op is not None
    arguments = {**bind(op, positional, keywords), **({TARGET: (ArgumentFacts(to),)} if to else {})}
    return next((wait.kind for wait in waits_of(op, arguments)), None)


# From torch's documentation and use, not from the table: result, 0-dim, boolean, integer (None: the name alone does not tell).
RETURNS: list[tuple[str, Returns, bool | None, bool | None, bool | None]] = [
    ("item", Returns.PYTHON, None, None, None),
    ("tolist", Returns.PYTHON, None, None, None),
    ("size", Returns.PYTHON, None, None, None),
    ("dim", Returns.PYTHON, None, None, None),
    ("numel", Returns.PYTHON, None, None, None),
    ("stride", Returns.PYTHON, None, None, None),
    ("is_contiguous", Returns.PYTHON, None, None, None),
    ("shape", Returns.PYTHON, None, None, None),
    ("equal", Returns.PYTHON, None, None, None),
    ("numpy", Returns.NUMPY, None, None, None),
    ("cpu", Returns.HOST, None, None, None),
    ("cuda", Returns.DEVICE, None, None, None),
    ("to", Returns.MOVE, None, None, None),
    ("bool", Returns.SAME, None, True, False),
    ("long", Returns.SAME, None, False, True),
    ("float", Returns.SAME, None, False, False),
    ("eq", Returns.SAME, None, True, False),
    ("lt", Returns.SAME, None, True, False),
    ("isnan", Returns.SAME, None, True, False),
    ("isfinite", Returns.SAME, None, True, False),
    ("logical_not", Returns.SAME, None, True, False),
    ("argmax", Returns.SAME, None, False, True),
    ("argsort", Returns.SAME, None, False, True),
    ("nonzero", Returns.SAME, False, False, True),
    ("multinomial", Returns.SAME, False, False, True),
    ("masked_select", Returns.SAME, False, None, None),
    ("trace", Returns.SAME, True, False, None),
    ("dist", Returns.SAME, True, False, False),
    ("unsqueeze", Returns.SAME, False, None, None),
    ("mean", Returns.SAME, None, False, False),
    ("softmax", Returns.SAME, None, False, False),
    ("split", Returns.SEQUENCE, False, None, None),
    ("unbind", Returns.SEQUENCE, None, None, None),
    ("topk", Returns.SEQUENCE, None, False, None),
    ("new_zeros", Returns.LIKE, None, None, None),
    ("backward", Returns.NONE, None, None, None),
    ("torch.zeros", Returns.FACTORY, None, None, None),
    ("torch.randperm", Returns.FACTORY, False, False, True),
    ("torch.rand", Returns.FACTORY, None, False, False),
    ("torch.zeros_like", Returns.LIKE, None, None, None),
    ("torch.from_numpy", Returns.HOST, None, None, None),
    ("torch.cat", Returns.SAME, False, None, None),
    ("torch.isin", Returns.SAME, None, True, False),
    ("torch.searchsorted", Returns.SAME, None, False, True),
    ("torch.linalg.svd", Returns.SEQUENCE, False, False, False),
    ("torch.linalg.inv", Returns.SAME, False, False, False),
    ("torch.linalg.matrix_rank", Returns.SAME, None, False, True),
    ("torch.fft.rfft", Returns.SAME, False, False, False),
    ("torch.nn.functional.one_hot", Returns.SAME, False, False, True),
    ("torch.nn.functional.silu", Returns.SAME, None, False, False),
    ("torch.nn.utils.clip_grad_norm_", Returns.SAME, True, False, False),
    ("torch.cuda.FloatTensor", Returns.DEVICE, None, False, False),
    ("torch.LongTensor", Returns.HOST, None, False, True),
    ("torch.is_tensor", Returns.PYTHON, None, None, None),
    ("torch.cuda.memory_allocated", Returns.PYTHON, None, None, None),
    ("torch.cuda.synchronize", Returns.NONE, None, None, None),
    ("torch.autograd.grad", Returns.SEQUENCE, None, None, None),
    ("builtins.float", Returns.PYTHON, None, None, None),
    ("builtins.sum", Returns.SAME, None, None, None),
    ("builtins.len", Returns.PYTHON, None, None, None),
    ("math.sqrt", Returns.PYTHON, None, None, None),
    ("numpy.asarray", Returns.NUMPY, None, None, None),
    ("numpy.sinc", Returns.NUMPY, None, None, None),
    ("einops.rearrange", Returns.SAME, None, None, None),
]


@pytest.mark.parametrize(("name", "returns", "rank0", "boolean", "integer"), RETURNS)
def test_results(name: str, returns: Returns, rank0: bool | None, boolean: bool | None, integer: bool | None) -> None:
    op = function(name) if "." in name else method(name)
    assert op is not None
    assert (op.returns, op.rank0, op.boolean, op.integer) == (returns, rank0, boolean, integer)


REDUCTIONS = ("sum", "mean", "max", "min", "any", "all", "prod", "std", "var", "median", "norm", "amax", "count_nonzero", "argmin")


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_are_zero_dim_without_a_dimension(name: str) -> None:
    op = method(name)
    assert op is not None
    assert op.rank0_without == ("dim",)


def test_results_that_depend_on_the_arguments() -> None:
    table = {name: method(name) for name in ("max", "nonzero", "unique", "topk", "clone", "abs", "add_")}
    assert all(table.values())
    ops = {name: op for name, op in table.items() if op is not None}
    where = function("torch.where")
    assert where is not None
    assert ops["max"].sequence_with == ("dim",)
    assert ops["max"].integer_items == ops["topk"].integer_items == (1,)
    assert ops["nonzero"].sequence_with == ("as_tuple",)
    assert ops["unique"].sequence_with == ("return_inverse", "return_counts")
    assert where.sequence_without == ("input",)
    assert where.keeps_type is False
    assert ops["clone"].keeps_type is ops["abs"].broadcasts is ops["add_"].keeps_type is True


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("torch.functional.F.softmax", "torch.nn.functional.softmax"),
        ("torch.functional.einsum", "torch.einsum"),
        ("torch.Tensor.masked_fill_", "masked_fill_"),
        ("torch.relu_", "torch.relu_"),
        ("torch.distributions.normal.Normal", "torch.distributions.Normal"),
        ("torch.nn.modules.batchnorm.SyncBatchNorm", "torch.nn.SyncBatchNorm"),
        ("torch.optim.lbfgs.LBFGS", "torch.optim.LBFGS"),
        ("torch.optim.swa_utils.AveragedModel", "torch.optim.swa_utils.AveragedModel"),
        ("torch.distributed.distributed_c10d.barrier", "torch.distributed.barrier"),
    ],
)
def test_other_spellings(spelling: str, name: str) -> None:
    op = function(spelling)
    assert op is not None
    assert op.name == name


def test_unknown_names_have_no_entry() -> None:
    assert function("torch.no_such_function") is None
    assert function("pandas.concat") is None
    assert method("no_such_method") is None
    assert method("Event.no_such_method") is None


def test_a_function_names_its_first_tensor_as_torch_does() -> None:
    op = function("torch.masked_select")
    assert op is not None
    assert op.params == ("input", "mask")
    assert [wait.when for wait in op.waits] == [("device:input",)]


def test_methods_that_give_a_tensor_away() -> None:
    own = ("unsqueeze", "masked_fill", "detach", "numel", "mul_", "zero_", "new_zeros")
    assert [name for name in own if not is_tensor_method(name)] == []
    shared = ("argmax", "sum", "item", "to", "cuda", "cpu", "view", "add", "gather", "__init__", "requires_grad_", "my_", "append", "split")
    assert [name for name in shared if is_tensor_method(name)] == []


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (FactKind.MASK_READ, first_kind(function("op.getitem"), DEVICE, MASK)),
        (FactKind.INDEX, first_kind(function("op.getitem"), DEVICE, ZERO_DIM)),
        (None, first_kind(function("op.getitem"), DEVICE, INTEGERS)),
        (None, first_kind(function("op.setitem"), DEVICE, MASK, NUMBER)),
        (FactKind.MASK_WRITE, first_kind(function("op.setitem"), DEVICE, MASK, DEVICE)),
        (FactKind.ELEMENT_WRITE, first_kind(function("op.setitem"), DEVICE, INTEGERS, NUMBER)),
        (None, first_kind(function("op.setitem"), DEVICE, INTEGERS, DEVICE)),
        (FactKind.MASK_WRITE, first_kind(function("op.augsetitem"), DEVICE, MASK, NUMBER)),
        (FactKind.NONZERO, first_kind(function("torch.where"), MASK)),
        (None, first_kind(function("torch.where"), MASK, DEVICE, DEVICE)),
        (FactKind.HOST_COPY, first_kind(method("to"), DEVICE, to=Place.HOST)),
        (None, first_kind(method("to"), DEVICE, to=Place.DEVICE)),
        (None, first_kind(method("to"), DEVICE, to=Place.HOST, non_blocking=TRUE)),
        (FactKind.BLOCKING_UPLOAD, first_kind(method("to"), HOST, to=Place.DEVICE)),
        (FactKind.HOST_BUILT_MOVE, first_kind(method("to"), ArgumentFacts(Place.HOST, fresh=True), to=Place.DEVICE)),
        (None, first_kind(method("to"), HOST, to=Place.DEVICE, non_blocking=TRUE)),
        (FactKind.PAGEABLE_NON_BLOCKING, first_kind(method("to"), LARGE, to=Place.DEVICE, non_blocking=TRUE)),
        (None, first_kind(method("to"), replace(LARGE, pinned=True), to=Place.DEVICE, non_blocking=TRUE)),
        (FactKind.UPLOAD_CONSTRUCTOR, first_kind(function("torch.tensor"), NUMBER, to=Place.DEVICE)),
        (None, first_kind(function("torch.tensor"), NUMBER, to=Place.HOST)),
        (FactKind.TENSOR_OF_TENSORS, first_kind(function("torch.tensor"), LIST_OF_DEVICE)),
        (FactKind.SCALAR_ARGUMENT, first_kind(method("add"), DEVICE, DEVICE, alpha=DEVICE)),
        (FactKind.INDEX, first_kind(function("torch.zeros"), NUMBER, DEVICE)),
        (FactKind.INDEX, first_kind(method("view"), DEVICE, NUMBER, DEVICE)),
        (None, first_kind(method("clamp"), DEVICE, min=DEVICE)),
        (FactKind.DATA_DEPENDENT_SIZE, first_kind(function("torch.nn.functional.one_hot"), DEVICE)),
        (None, first_kind(function("torch.nn.functional.one_hot"), DEVICE, NUMBER)),
        (FactKind.HIDDEN_WAIT, first_kind(function("torch.nn.utils.clip_grad_norm_"), NUMBER, error_if_nonfinite=TRUE)),
        (None, first_kind(function("torch.nn.utils.clip_grad_norm_"), NUMBER)),
        (FactKind.VALIDATED_DISTRIBUTION, first_kind(function("torch.distributions.Gumbel"), DEVICE, DEVICE)),
        (FactKind.VALIDATED_DISTRIBUTION, first_kind(function("torch.distributions.Gumbel"), DEVICE, DEVICE, validate_args=NONE)),
        (None, first_kind(function("torch.distributions.Gumbel"), DEVICE, DEVICE, validate_args=FALSE)),
        (None, first_kind(function("torch.distributions.Gumbel"), HOST, HOST)),
        (FactKind.CHECKED_LINALG, first_kind(function("torch.linalg.cholesky"), DEVICE)),
        (FactKind.CHECKED_LINALG, first_kind(function("torch.linalg.cholesky_ex"), DEVICE, check_errors=TRUE)),
        (None, first_kind(function("torch.linalg.cholesky_ex"), DEVICE)),
        (FactKind.EXPLICIT_SYNCHRONIZE, first_kind(method("torch.cuda.Event.synchronize"), NUMBER)),
        (None, first_kind(method("Event.elapsed_time"), NUMBER, NUMBER)),
        (FactKind.SCALAR_CAST, first_kind(function("math.isfinite"), DEVICE)),
        (FactKind.FORMAT, first_kind(method("Logger.warning"), NUMBER, NUMBER, DEVICE)),
        (None, first_kind(method("Logger.debug"), NUMBER, NUMBER, DEVICE)),
        (FactKind.FORMAT, first_kind(method("Tqdm.set_postfix"), NUMBER, loss=DEVICE)),
        (None, first_kind(method("Tqdm.set_postfix"), NUMBER, loss=NUMBER, refresh=FALSE)),
        (FactKind.HIDDEN_WAIT, first_kind(method("BatchNorm.forward"), NUMBER, DEVICE, momentum=NONE)),
        (None, first_kind(method("BatchNorm.forward"), NUMBER, DEVICE)),
    ],
)
def test_which_form_waits(kind: FactKind | None, found: FactKind | None) -> None:
    assert found is kind


def test_left_out_and_none_are_the_same_to_a_condition() -> None:
    arguments = {"size": (NONE,), "flag": (FALSE,), "given": (NUMBER,)}
    assert holds("absent:size", arguments)
    assert not holds("given:size", arguments)
    assert holds("none:size", arguments)
    assert not holds("none:nothing", arguments)
    assert holds("untrue:flag", arguments)
    assert holds("untrue:nothing", arguments)
    assert not holds("untrue:given", arguments)
    assert holds("false:flag", arguments)
    assert not holds("false:nothing", arguments)


@pytest.mark.parametrize("atom", ["device", "device:", ":self", "to:self", "somewhere:self"])
def test_what_is_no_condition_is_an_error(atom: str) -> None:
    with pytest.raises(ValueError, match="not a condition"):
        split_atom(atom)


def test_no_name_has_two_entries() -> None:
    assert index().duplicates == []


def test_every_condition_speaks_of_a_parameter() -> None:
    # Arguments of the constructor, in conditions of the object's methods.
    made_with = {"momentum", "validate_args", "enable_nested_tensor", "capturable", "enabled"}
    for op in every_op():
        params = {param.lstrip("*") for param in op.params}
        for wait in op.waits:
            named = {name for kind, name in map(split_atom, wait.when) if kind != "to"}
            of_an_object = "." in op.name and op.name[0].isupper()
            assert named <= params | (made_with if of_an_object else set()), (op.name, wait.when)


def test_no_form_stands_twice_or_behind_one_that_always_holds() -> None:
    for op in every_op():
        forms = [frozenset(wait.when) for wait in op.waits]
        hidden = [forms[later] for later in range(len(forms)) for earlier in forms[:later] if earlier <= forms[later]]
        assert hidden == [], op.name


def test_what_was_not_measured_says_for_which_versions_it_is_believed() -> None:
    for op in every_op():
        for wait in op.waits:
            assert wait.evidence
            assert wait.torch == MEASURED_TORCH if wait.measured else re.fullmatch(r"any|[<>]=\d\.\d+", wait.torch), (op.name, wait)


def test_the_measurement_names_its_gpu_and_torch() -> None:
    found = measured_with()
    assert (found.gpu, found.date) == ("NVIDIA H200", "2026-11-30")
    assert found.torch.startswith(f"{MEASURED_TORCH}.")


def test_names_that_may_wait() -> None:
    assert {"item", "synchronize", "full", "Normal", "getitem", "sqrt"} <= waiting_names()
    assert {"argmax", "shape", "rearrange"}.isdisjoint(waiting_names())


def test_the_files_hold_one_entry_a_line() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == {*FILES, "waits_h200", "pageable_h200"}
    for file in FILES:
        lines = (FOLDER / f"{file}.json").read_text(encoding="utf-8").splitlines()
        assert (lines[0], lines[-1]) == ("[", "]")
        assert all(line.startswith('{"') for line in lines[1:-1]), file

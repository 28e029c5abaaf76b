"""The rules: each example is proved by the engine, each page's evidence by the measurement, each message by its wording."""
from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import libcst as cst
import pytest

from hostlint import registry, wording
from hostlint.facts.fact import Fact
from hostlint.facts.kinds import FactKind
from hostlint.model import ChainLink, Confidence, Heat, HeatLevel, Span
from hostlint.rule import Example, Rule
from hostlint.scan import scan_text
from hostlint.testing import check_example, marked_lines, unmarked

MEASURED = Path(__file__).parents[1] / "hostlint" / "torch_ops" / "waits_h200.json"
CASES = [(rule, example) for rule in registry.rules() for example in rule.examples]
NAMES = [f"{rule.name}-{number}" for rule in registry.rules() for number, _ in enumerate(rule.examples, 1)]
EVIDENCE = re.compile(
    r"^- `(?P<call>.+)`: (?P<verdict>free|host work|1 wait|\d+ waits|waits, not reported by the debug mode)$", re.MULTILINE
)


@pytest.mark.parametrize(("rule", "example"), CASES, ids=NAMES)
def test_example(rule: Rule, example: Example) -> None:
    assert check_example(rule, example) == []


@pytest.mark.parametrize(("rule", "example"), CASES, ids=NAMES)
def test_example_is_a_marked_program_and_a_clean_one(rule: Rule, example: Example) -> None:
    assert marked_lines(example.bad)
    assert not marked_lines(example.good)
    for text in (example.bad, example.good):
        program = ast.parse(unmarked(text))
        assert any(isinstance(part, ast.Import) and part.names[0].name == "torch" for part in ast.walk(program))
    assert all(registry.find(code) for code in example.also)


def test_a_wrong_example_is_told_apart() -> None:
    rule = registry.for_kind(FactKind.ITEM)
    right = rule.examples[0]
    swapped = Example(bad=right.good.replace("return total\n", "return total  # expect\n"), good=right.bad)
    line = 1 + right.bad.splitlines().index("        total += loss.item() * x.shape[0]  # expect")
    differences = check_example(rule, swapped)
    assert f"bad, line {len(right.good.splitlines())}: HL101 device-item is missing" in differences
    assert any(text.startswith(f"good, line {line}: HL101 device-item is not wanted") for text in differences)


def test_an_example_that_does_not_parse_is_told() -> None:
    differences = check_example(registry.for_kind(FactKind.ITEM), Example(bad="def f(:\n    pass  # expect\n", good="x = 1\n"))
    assert any(text.startswith("bad, line 1: ") for text in differences)


def test_pages_quote_the_measurement_as_it_is() -> None:
    table = {entry["call"]: entry for entry in json.loads(MEASURED.read_text(encoding="utf-8"))["calls"]}
    quoted = 0
    for rule in registry.rules():
        for line in EVIDENCE.finditer(rule.page):
            entry = table[line["call"]]
            waits = entry["warnings"]
            counted = {0: "waits, not reported by the debug mode", 1: "1 wait"}.get(waits, f"{waits} waits")
            words = counted if entry["blocks"] else {"host-work": "host work"}.get(entry["kind"], "free")
            assert line["verdict"] == words, f"{rule.name}: {line['call']}"
            quoted += 1
        bullets = rule.page.split("## Evidence\n")[1].split("\n## ")[0].count("\n- `")
        assert bullets == len(EVIDENCE.findall(rule.page)), f"{rule.name}: a line of evidence that is none"
    assert quoted > 150


def parsed(source: str) -> cst.BaseExpression:
    """As the engine hands an expression over: parsed in parentheses of its own."""
    return cst.parse_expression(f"({source}\n)")


def fact(kind: FactKind, source: str, heat: Heat | None = None, detail: str = "", call: str = "", statement: str = "") -> Fact:
    chain = (ChainLink("pkg/run.py", 7, "denoise"),)
    return Fact(
        kind, "pkg/mod.py", "Model.forward", Span(3, 5, 3, 5 + len(source)), (3, 3), call, "t", "evidence", Confidence.CERTAIN,
        heat or Heat(HeatLevel.CALL, chain), "measured", detail, statement,
    )  # fmt: skip


MESSAGES = [
    (FactKind.ITEM, "loss.item()", "keep `loss` on the device"),
    (FactKind.ITEM, "(x == eos).all().item()", "combine the flag on the device"),
    (FactKind.ITEM, "logits.argmax(-1).item()", "keep the index a tensor"),
    (FactKind.ITEM, "(x == y).nonzero()[0].item()", "count on the host"),
    (FactKind.ITEM, "indices[1].item()", "count on the host"),
    (FactKind.ITEM, "self.sigmas[i].item()", "if `self.sigmas` stays the same over the steps"),
    (FactKind.SCALAR_CAST, "math.isfinite(norm)", "`torch.isfinite(t)`"),
    (FactKind.SCALAR_CAST, "math.sqrt(norm)", "use `torch.sqrt`"),
    (FactKind.SCALAR_CAST, "math.gcd(n, 4)", "keep `t` a tensor"),
    (FactKind.SCALAR_CAST, "int(lengths.max())", "host int"),
    (FactKind.SCALAR_CAST, "float(loss)", "sums in float64"),
    (FactKind.SCALAR_CAST, "'%d' % step", "logging guard"),
    (FactKind.TRUTH_TEST, "max(a, b)", "`torch.maximum`"),
    (FactKind.TRUTH_TEST, "sorted(values)", "`torch.sort`"),
    (FactKind.TRUTH_TEST, "any(flags)", "keep `.any()` on the device"),
    (FactKind.TRUTH_TEST, "torch.isnan(x).any()", "every N steps, before a checkpoint"),
    (FactKind.TRUTH_TEST, "torch.isnan(loss)", "every N steps, before a checkpoint"),
    (FactKind.TRUTH_TEST, "t in tokens", "`torch.isin`"),
    (FactKind.TRUTH_TEST, "low <= t <= high", "`.tolist()` the flags once before the loop"),
    (FactKind.TRUTH_TEST, "done.all()", "`torch.where`"),
    (FactKind.HOST_COPY, "np.asarray(t)", "compute with torch"),
    (FactKind.HOST_COPY, "x.cpu()", "pinned slot and its event"),
    (FactKind.TOLIST, "t.tolist()", "pass those Python numbers along"),
    (FactKind.FORMAT, "print(step, loss)", "puts a device value into text"),
    (FactKind.INDEX, "x[begin:end]", "slice with host integers"),
    (FactKind.INDEX, "sigmas[step]", "`sigmas.index_select(0, step.view(1))` (a copy, not a view)"),
    (FactKind.INDEX, "range(n)", "host integer"),
    (FactKind.INDEX, "torch.zeros(n)", "largest size"),
    (FactKind.SCALAR_ARGUMENT, "x.masked_fill(m, level)", "`torch.where(m, level, x)`"),
    (FactKind.SCALAR_ARGUMENT, "x.masked_fill_(value=level, mask=m)", "`torch.where(m, level, x)`"),
    (FactKind.SCALAR_ARGUMENT, "torch.full((n,), t)", "expand"),
    (FactKind.SCALAR_ARGUMENT, "torch.sub(g, p, alpha=s)", "multiply"),
    (FactKind.SCALAR_ARGUMENT, "torch.arange(t)", "range of fixed size"),
    (FactKind.SCALAR_ARGUMENT, "x.topk(k)", "host number"),
    (FactKind.TENSOR_OF_TENSORS, "torch.tensor([a, b], device=d)", "`torch.stack([a, b])`"),
    (FactKind.TENSOR_OF_TENSORS, "torch.tensor([t / 1000])", "`(t / 1000).reshape(1)`"),
    (FactKind.TENSOR_OF_TENSORS, "torch.tensor([t] * x.shape[0], device=d)", "`t.expand(x.shape[0])`"),
    (FactKind.NONZERO, "(self.timesteps == t).nonzero()", "count steps on the host"),
    (FactKind.NONZERO, "torch.nonzero(timesteps == t)", "count steps on the host"),
    (FactKind.NONZERO, "torch.where(mask)", "`nonzero_static`"),
    (FactKind.MASK_READ, "x[valid]", "positions once before the loop"),
    (FactKind.MASK_READ, "x.masked_select(valid)", "positions once before the loop"),
    (FactKind.MASK_WRITE, "x[hole]", "`torch.where(hole, new, x)`"),
    (FactKind.MASK_WRITE, "x.index_put_((m,), v)", "`torch.where(m, v, x)`"),
    (FactKind.DATA_DEPENDENT_SIZE, "F.one_hot(ids)", "`num_classes=`"),
    (FactKind.DATA_DEPENDENT_SIZE, "x.repeat_interleave(n)", "`output_size=`"),
    (FactKind.DATA_DEPENDENT_SIZE, "torch.bincount(ids)", "`scatter_add_`"),
    (FactKind.DATA_DEPENDENT_SIZE, "torch.unique_consecutive(ids)", "`index_add_`"),
    (FactKind.DATA_DEPENDENT_SIZE, "ops.nms(boxes, scores, 0.5)", "`topk`"),
    (FactKind.DATA_DEPENDENT_SIZE, "torch.combinations(x)", "a form whose size the host knows"),
    (FactKind.CHECKED_LINALG, "torch.linalg.solve(a, b)", "`torch.linalg.solve_ex(...).result`"),
    (FactKind.CHECKED_LINALG, "torch.cholesky(a)", "`torch.linalg.cholesky_ex(...).L`"),
    (FactKind.CHECKED_LINALG, "torch.linalg.svd(a)", "no unchecked form"),
    (FactKind.CHECKED_LINALG, "torch.linalg.ldl_factor_ex(a)", "no unchecked form"),
    (FactKind.CHECKED_LINALG, "torch.linalg.inv_ex(a, check_errors=True)", "leave out `check_errors=True`"),
    (FactKind.CHECKED_LINALG, "MultivariateNormal(m, covariance_matrix=c)", "`scale_tril=`"),
    (FactKind.VALIDATED_DISTRIBUTION, "Categorical(logits=l)", "pass `validate_args=False`"),
    (FactKind.VALIDATED_DISTRIBUTION, "d.log_prob(x)", "construct the distribution with `validate_args=False`"),
    (FactKind.HIDDEN_WAIT, "clip_grad_norm_(p, 1.0, error_if_nonfinite=True)", "leave out `error_if_nonfinite=True`"),
    (FactKind.HIDDEN_WAIT, "nn.BatchNorm2d(8, momentum=None)", "fixed momentum"),
    (FactKind.HIDDEN_WAIT, "normal.sample()", "`rsample()`"),
    (FactKind.HIDDEN_WAIT, "torch.cov(x)", "every N steps, or compute"),
    (FactKind.HIDDEN_WAIT, "writer.add_scalar('loss', loss, k)", "call it every N steps"),
    (FactKind.HIDDEN_WAIT, "self.scaler.step(opt)", "needs no scaler"),
    (FactKind.HIDDEN_WAIT, "adafactor.step()", "AdamW do not"),
    (FactKind.EXPLICIT_SYNCHRONIZE, "torch.cuda.synchronize()", "`wait_stream`"),
    (FactKind.EXPLICIT_SYNCHRONIZE, "self.event.synchronize()", "the `self.event` of the step before"),
    (FactKind.EXPLICIT_SYNCHRONIZE, "dist.barrier()", "order the ranks already"),
    (FactKind.EXPLICIT_SYNCHRONIZE, "torch.cuda.graph(g)", "capture once"),
    (FactKind.EXPLICIT_SYNCHRONIZE, "start.elapsed_time(end)", "some steps ago"),
    (FactKind.EXPLICIT_SYNCHRONIZE, "torch.cuda.current_stream().synchronize()", "let the device wait"),
    (FactKind.EQUALITY, "torch.equal(a, b)", "`(a == b).all()`"),
    (FactKind.EQUALITY, "a.allclose(b)", "`torch.isclose(...).all()`"),
    (FactKind.UPLOAD_CONSTRUCTOR, "torch.tensor([-1], device=d)", "`torch.full((1,), -1, ...)`"),
    (FactKind.UPLOAD_CONSTRUCTOR, "torch.tensor(-0.5, device=d)", "`torch.full((), -0.5, ...)`"),
    (FactKind.UPLOAD_CONSTRUCTOR, "x.new_tensor([1.0])", "`new_full((1,), 1.0, ...)`"),
    (FactKind.UPLOAD_CONSTRUCTOR, "torch.tensor(range(n), device=d)", "`torch.arange`"),
    (FactKind.UPLOAD_CONSTRUCTOR, "torch.tensor(mean, device=d)", "buffer or memo"),
    (FactKind.UPLOAD_CONSTRUCTOR, "torch.tensor(mean, device=d)", "`non_blocking=True` from pinned buffers that are kept"),
    (FactKind.UPLOAD_CONSTRUCTOR, "torch.tensor(data=self.mean, device=d)", "the constant `self.mean` on the device"),
    (FactKind.UPLOAD_CONSTRUCTOR, "torch.tensor([0, 4], device=d)", "keep the constant `[0, 4]` on the device"),
    (FactKind.UPLOAD_CONSTRUCTOR, "torch.tensor([step], device=d)", "where `step` is one number, fill on the device"),
    (FactKind.UPLOAD_CONSTRUCTOR, "torch.tensor([r.ids for r in rows], device=d)", "one upload"),
    (FactKind.HOST_BUILT_MOVE, "torch.arange(n).to(d)", "give `torch.arange` the device"),
    (FactKind.HOST_BUILT_MOVE, "torch.tensor([1.0]).to(d)", "keep `[1.0]` on the device in a buffer or memo"),
    (FactKind.HOST_BUILT_MOVE, "torch.arange(n).float().unsqueeze(0).to(d)", "give `torch.arange` the device"),
    (FactKind.HOST_BUILT_MOVE, "torch.arange(n).float().exp().to(d)", "a constant: keep the uploaded result"),
    (FactKind.HOST_BUILT_MOVE, "pad_sequence([torch.tensor(r) for r in rows]).to(d)", "one upload"),
    (FactKind.HOST_BUILT_MOVE, "torch.tensor(rewards).to(d)", "one upload"),
    (FactKind.HOST_BUILT_MOVE, "torch.randn(n).to(d)", "the same seed gives other numbers"),
    (FactKind.HOST_BUILT_MOVE, "rows.to(d)", "one upload"),
    (FactKind.HOST_BUILT_MOVE, "torch.exp(x).to(d)", "last bits"),
    (FactKind.BLOCKING_UPLOAD, "h.to(d)", "move `h` once before the loop"),
    (FactKind.BLOCKING_UPLOAD, "x.copy_(h)", "move `h` once before the loop"),
    (FactKind.BLOCKING_UPLOAD, "x[2:4]", "the host tensor written to `x[2:4]`"),
    (FactKind.BLOCKING_UPLOAD, "torch.tensor(h, device=d)", "kept pinned buffer"),
    (FactKind.HOST_INDEX, "x[:, [0, 2, 4]]", "slice with `0:5:2` (a view)"),
    (FactKind.HOST_INDEX, "x[:, range(2, n)]", "slice with `2:n` (a view)"),
    (FactKind.HOST_INDEX, "x[rows]", "upload a step's indices together"),
    (FactKind.HOST_INDEX, "x[[3, 4, 5]]", "slice with `3:6`"),
    (FactKind.HOST_INDEX, "x[[0, 3, 5]]", "copy; keep the index on the device"),
    (FactKind.HOST_INDEX, "x[rows]", "copy; keep the index on the device"),
    (FactKind.ELEMENT_WRITE, "stats[0]", "`stats[0:1] = ...`"),
    (FactKind.ELEMENT_WRITE, "stats[-1]", "`stats[-1:] = ...`"),
    (FactKind.ELEMENT_WRITE, "stats[rows]", "`stats.index_fill_(0, rows, ...)`"),
    (FactKind.ELEMENT_WRITE, "stats[rows, 0]", "`stats.new_full((), ...)`"),
    (FactKind.ELEMENT_WRITE, "stats[(rows, columns)]", "`stats.new_full((), ...)`"),
    (FactKind.HOST_OPERAND, "torch.where(m, x, torch.tensor(0.0))", "pass `0.0` itself"),
    (FactKind.HOST_OPERAND, "torch.where(m, x, zero)", "pass the Python number itself"),
    (FactKind.PIN_PER_CALL, "t.pin_memory()", "ring of pinned buffers"),
    (FactKind.PAGEABLE_NON_BLOCKING, "t.to(d, non_blocking=True)", "in spite of `non_blocking=True`"),
    (FactKind.FLUSH, "torch.cuda.empty_cache()", "where a model leaves the device"),
    (FactKind.COLLECTION, "gc.collect()", "collect every N steps"),
    (FactKind.OBSERVER_PAUSE, "torch.cuda.empty_cache()", "off by default"),
    (FactKind.COLLECTOR_OFF, "gc.disable()", "every N steps"),
    (FactKind.UNFINISHED_COPY, "frame.numpy()", "wait for it before the read"),
    (FactKind.PINNED_REWRITE, "stage.copy_(row)", "ring of pinned buffers"),
    (FactKind.GRAPH_KEPT, "loss", "keep the loss detached"),
    (FactKind.LOW_PRECISION_SUM, "loss", "in float64"),
    (FactKind.DROPPED_MOVE, "x.to(d)", "assign it to `x`"),
    (FactKind.REBUILT_CONSTANT, "torch.arange(n)", "keep it per (shape, dtype, device)"),
    (FactKind.INVARIANT_WORK, "mask.float()", "compute it once before the loop"),
    (FactKind.CAST_PER_BLOCK, "mask.bool()", "once before that loop and hand it down"),
    (FactKind.CONSTANT_PROJECTION, "self.to_k(text)", "compute it once for each request and branch"),
    (FactKind.IDENTITY_KEY, "torch.cat([a, b])", "make the tensor once and pass the same object"),
    (FactKind.SAME_PER_BLOCK, "torch.cat([cos, sin])", "compute it once before the loop over the blocks"),
    (FactKind.LAUNCH_LOOP, "mask[i]", "with a tensor in the place of the counter"),
    (FactKind.ENVIRONMENT_READ, 'os.getenv("A")', "read it once and keep the value"),
    (FactKind.SIZE_TABLE, "mask(n, d)", "in a small `lru_cache`"),
    (FactKind.VALUE_KEY, "table(key)", "compute from the device's values without a cache"),
    (FactKind.EAGER_LOG, "log.debug(x)", "under `isEnabledFor(logging.DEBUG)`"),
    (FactKind.PINNED_FREED, "cudart.cudaHostUnregister(p)", "record an event after the copy and wait for it first"),
    (FactKind.HOST_COUNTER, "self.steps", "keep a Python number beside it"),
    (FactKind.SINGLE_ENTRY, "key != self.key", "keep a dictionary by key"),
    (FactKind.UNGUARDED_COLLECTIONS, "inbox.get()", "run each request under `request_gc.defer()`"),
]


@pytest.mark.parametrize(("kind", "source", "words"), MESSAGES, ids=[f"{kind.value} {source}" for kind, source, _ in MESSAGES])
def test_message(kind: FactKind, source: str, words: str) -> None:
    check = registry.for_kind(kind).check
    assert check is not None
    problem = check(fact(kind, source), parsed(source))
    assert problem is not None
    assert words in problem.message
    assert "(called from `denoise`, pkg/run.py:7)" in problem.message
    assert "\n" not in problem.message
    assert "``" not in problem.message
    assert f"`{wording.short(source)}`" in problem.message


SEEN = [  # what is done with the value decides the cure
    (FactKind.MASK_WRITE, "x[m]", "    x[m] = packed", "`x.masked_scatter(m, packed)` if it is packed"),
    (FactKind.MASK_WRITE, "x[m]", "x[m] = y[m]", "use `torch.where(m, y, x)`"),
    (FactKind.MASK_WRITE, "x[m]", "x[m] = x[m] * f", "use `torch.where(m, x * f, x)`"),
    (FactKind.MASK_WRITE, "x[m]", "x[m] = x[m].clamp(0, 1)", "use `torch.where(m, x.clamp(0, 1), x)`"),
    (FactKind.MASK_WRITE, "x[m]", "x[m] = net(x[m])", "packed to the true elements: use `x.masked_scatter(m, net(x[m]))`"),
    (FactKind.MASK_WRITE, "x[m]", "x[m] = torch.randint(9, x[m].shape)", "packed to the true elements"),
    (FactKind.MASK_WRITE, "x[~m]", "  x[~m] -= y[~m] + 1", "use `torch.where(~m, x - (y + 1), x)`"),
    (FactKind.MASK_WRITE, "x[m]", "x[m] *= net(y[m])", "where `net(y)` can be had in full size, use `torch.where(m, x * net(y), x)`"),
    (FactKind.MASK_READ, "x[a == e]", "s = torch.sum(x[a == e]).item()", "`torch.where(a == e, x, 0).sum()`"),
    (FactKind.MASK_READ, "x[m]", "    if (x[m] - y[m]).square().mean(0) > 1:", "(m, (x - y).square(), 0).sum(0)` over the count"),
    (FactKind.MASK_READ, "x[m]", "    elif (x[m] == 0).any():", "`((x == 0) & m).any()`"),
    (FactKind.MASK_READ, "x[m]", "a = (x[m] - rows).mean()", "positions once before the loop"),
    (FactKind.MASK_READ, "x[m]", "a = net(x[m]).mean()", "positions once before the loop"),
    (FactKind.MASK_READ, "x[m]", "a = torch.cat([x[m], x[~m]])", "stable=True"),
    (FactKind.MASK_READ, "x[m]", "a = x[m].tolist()", "copy `x` and the mask to the host once"),
    (FactKind.MASK_READ, "x[m]", "a = len(x[m])", "the count alone is `m.sum()`"),
    (FactKind.MASK_READ, "m[m]", "a = m[m].sum()", "`m.sum()` says the same"),
    (FactKind.MASK_READ, "m[m]", "a = net(m[m])", "every element is true"),
    (FactKind.MASK_READ, "x[ids == e]", "a = net(x[ids == e])", "sort by `ids` once"),
    (FactKind.DATA_DEPENDENT_SIZE, "x.unique()", "a = x.unique()[0]", "`index_add_`"),
    (FactKind.ITEM, "loss.item()", "total += loss.item()", "(detached, sums in float64)"),
    (FactKind.ITEM, "loss.item()", "    log(loss.item())", "(detached)"),
]


@pytest.mark.parametrize(("kind", "source", "statement", "words"), SEEN, ids=[statement.strip() for _, _, statement, _ in SEEN])
def test_the_cure_fits_what_is_done_with_the_value(kind: FactKind, source: str, statement: str, words: str) -> None:
    check = registry.for_kind(kind).check
    assert check is not None
    problem = check(fact(kind, source, statement=statement), parsed(source))
    assert problem is not None
    assert words in problem.message
    assert "torch.where(m, m" not in problem.message


@pytest.mark.parametrize("statement", ["n = torch.bincount(ids).cpu()", "    for n in torch.bincount(ids).tolist():"])
def test_a_size_that_is_copied_at_once_is_left_to_the_copy(statement: str) -> None:
    check = registry.for_kind(FactKind.DATA_DEPENDENT_SIZE).check
    assert check is not None
    source = "torch.bincount(ids)"
    assert check(fact(FactKind.DATA_DEPENDENT_SIZE, source, statement=statement), parsed(source)) is None
    assert check(fact(FactKind.DATA_DEPENDENT_SIZE, source, statement=f"n = {source}"), parsed(source)) is not None


def test_the_engine_hands_the_statement_over() -> None:
    text = (
        "import torch\n\n\ndef fit(net, steps: int):\n    x = torch.zeros(8, device=\"cuda\")\n    for _ in range(steps):\n"
        "        x = net(x)\n        ids = x.long().cuda()\n        y = x.cuda()\n        y[y > 0] = net(y[y > 0])\n"
        "        net(ids.bincount().tolist())\n"
    )
    findings, errors = scan_text(text, "fit.py")
    assert not errors
    found = {finding.code: finding.message for finding in findings}
    assert sorted(found) == ["HL105", "HL111", "HL112"]
    assert "`y.masked_scatter(y > 0, net(y[y > 0]))`" in found["HL112"]


def test_every_kind_is_worded() -> None:
    assert {kind for kind, _, _ in MESSAGES} == set(FactKind)


def test_a_pinned_blocking_copy_only_misses_the_flag() -> None:
    check = registry.for_kind(FactKind.BLOCKING_UPLOAD).check
    assert check is not None
    problem = check(fact(FactKind.BLOCKING_UPLOAD, "p.to(d)", detail="host:self pinned:self to:device"), parsed("p.to(d)"))
    assert problem is not None
    assert "add `non_blocking=True`" in problem.message


def test_one_element_by_a_host_integer_becomes_a_slice() -> None:
    check = registry.for_kind(FactKind.ELEMENT_WRITE).check
    assert check is not None
    problem = check(fact(FactKind.ELEMENT_WRITE, "x[i]", detail="device:self element:index pydata:value"), parsed("x[i]"))
    assert problem is not None
    assert "`x[i:i + 1] = ...`" in problem.message


def test_a_while_test_is_told_to_count_on_the_host() -> None:
    check = registry.for_kind(FactKind.TRUTH_TEST).check
    assert check is not None
    problem = check(fact(FactKind.TRUTH_TEST, "gap > tol", call="while"), parsed("gap > tol"))
    assert problem is not None
    assert "let the host count" in problem.message


@pytest.mark.parametrize(
    ("heat", "words"),
    [
        (Heat(HeatLevel.LOOP, (ChainLink("pkg/mod.py", 12, "Model.forward"),)), "in the step loop at line 12"),
        (Heat(HeatLevel.LOOP), "in the step loop"),
        (
            Heat(HeatLevel.LOOP, (ChainLink("pkg/run.py", 40, "denoise"), ChainLink("pkg/mod.py", 12, "Model.forward"))),
            "in the loop at line 12, on every step (called from `denoise`, pkg/run.py:40)",
        ),
        (Heat(HeatLevel.CALL, (ChainLink("pkg/run.py", 40, "denoise"),)), "on every step (called from `denoise`, pkg/run.py:40)"),
        (Heat(HeatLevel.CALL, (ChainLink("pkg/mod.py", 40, "<module>"),)), "on every step (called from module level, line 40)"),
        (Heat(HeatLevel.CALL, (ChainLink("pkg/mod.py", 2, "Model.forward"),)), "on every call of `forward`, which runs each step"),
        (Heat(HeatLevel.CALL), "on every call of `forward`, which runs each step"),
        (Heat(HeatLevel.REQUEST), "once per request"),
        (Heat(HeatLevel.COLD), "in code that runs once"),
    ],
)
def test_when(heat: Heat, words: str) -> None:
    assert wording.when(fact(FactKind.ITEM, "t.item()", heat)) == words


def test_long_source_is_cut_in_the_middle() -> None:
    node = cst.parse_expression("torch.stack([\n    first_value_of_many,\n    second_value_of_many, third_value_of_many]).item()")
    words = wording.text(node)
    assert words.startswith("torch.stack([ first_value")
    assert words.endswith("]).item()")
    assert len(words) <= wording.LONGEST_QUOTE
    assert wording.short("x.item()") == "x.item()"


CURES = """\
import torch
from torch import nn


def verify(ok, message):
    if not ok:
        raise ValueError(message)


class Net(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        {line}
        return x
"""


@pytest.mark.parametrize(("line", "words"), [
    ("max_seqlen = lengths.max().item()", "a size is needed at once"),
    ("x = x + torch.zeros((int(lengths.sum().item()), 4), device=x.device)", "a size is needed at once"),
    ("x = x.view(lengths.max().item(), -1)", "a size is needed at once"),
    ("x = x + torch.full((int(lengths.max().item()),), 1.0, device=x.device)", "a size is needed at once"),
    ("x = x + torch.full((3,), lengths.float().mean().item(), device=x.device)", "read it after the loop"),
    ("x = x + torch.linspace(0, lengths.float().mean().item(), 3, device=x.device)", "read it after the loop"),
    ("x = x.add(lengths.float().mean().item()).view(3)", "read it after the loop"),
    ("shown = lengths.float().mean().item()", "read it after the loop"),
    ("maximum = lengths.max().item()", "read it after the loop"),
    ('verify(x.numel() == 4, f"tokens: {lengths}")', "only where the check fails"),
    ('torch._check_with(ValueError, x.numel() == 4, f"tokens: {lengths}")', "only where the check fails"),
    ('print(x.numel(), f"tokens: {lengths}")', "every N steps"),
])  # fmt: skip
def test_the_cure_fits_what_the_value_is_for(line: str, words: str) -> None:
    findings, errors = scan_text(CURES.replace("{line}", line), "net.py")
    assert not errors
    assert [words in finding.message for finding in findings if finding.code in ("HL101", "HL106")] == [True]

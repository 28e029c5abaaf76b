"""What an `if` says about how often its branches run: caches, every-n tests, debug switches, first iterations, evaluation, export."""
from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from hostlint.facts.chains import chain
from hostlint.facts.fallbacks import fallback, is_host_copy
from hostlint.facts.memos import memo, unwrap
from hostlint.facts.schema import RegionKind

DEBUG_WORDS = re.compile(
    r"debug|verbose|diagnos|isenabledfor|profil|log_?level|dump|trace_|benchmark|wall_clock|sanity|print_(stats|timing)|"
    r"detect_anomaly|enable_timing|return_trajector|save_(intermediate|trajectory)|record_metrics|env.*check|check_numerics|"
    r"collect_stats|nan_check|check_nan",
    re.IGNORECASE,
)
ONCE_WORDS = re.compile(
    r"warm(ing)?_?up|first_(step|iter|batch|call|run|time|forward|pass)|is_first|initiali[sz]ed|is_init$|is_last|last_(step|iter)|"
    r"_built$|_ready$|needs_init",
    re.IGNORECASE,
)
OBSERVERS = re.compile(r"prof|timer|timing|trac(e|ing)|debug|log|monitor|stat|meter|watch|clock|probe|inspect|record", re.IGNORECASE)
ENABLED = re.compile(r"^_?(is_)?(enabled?|active|on)$", re.IGNORECASE)
CHECKS = re.compile(
    r"debug|check|assert|verif|valid|log|trac(e|ing)|dump|prof|stat|nan|verbose|diagnos|probe|inspect|monitor", re.IGNORECASE
)
OFF_DEVICE = re.compile(r"^_?(is_|on_|use_|has_)?(mps|cpu|mlx)$")
ON_DEVICE = re.compile(r"^_?((is|on|use|has|supports?|inputs_on)_)+(cuda|triton|gpu)$")
WORK_RHYTHM = re.compile(r"accum|generat|rollout|num_iterations|steps_per_|micro_?batch", re.IGNORECASE)
OFF = frozenset({"0", "", "false", "False", "off", "no", None, False})  # 0 is equal to False
EVERY_WORDS = re.compile(
    r"should_(log|save|eval|print|record|sync_log)|log_(interval|every|steps|freq)|logging_steps|is_log|report_every|time_to_log|do_log",
    re.IGNORECASE,
)
EVALUATION_WORDS = re.compile(
    r"^(is_|do_|in_|run_)?(eval|evaluate|evaluation|validation|validate|val|is_val|testing)(_mode|_only|_step)?$", re.IGNORECASE
)
EXPORT_WORDS = frozenset({
    "is_in_onnx_export", "is_tracing", "is_scripting", "is_exporting", "is_torchdynamo_exporting", "is_dynamo_exporting", "is_compiling",
    "is_dynamo_compiling", "is_torchdynamo_compiling", "is_current_stream_capturing",
})
# A graph is captured once for each size, before it serves.
CAPTURING = re.compile(r"_?(get_)?(is_|in_)*((cuda_)?graph_|stream_)?captur(e|ing)(_mode)?")
TRAINING_NAME = re.compile(r"^(is_|in_)?training(_mode)?$", re.IGNORECASE)
MODE_NAME = re.compile(r"(^|_)(mode|phase|split|stage)$", re.IGNORECASE)
TRAINING_MODES = frozenset({"train", "training"})
EVALUATION_MODES = frozenset({"eval", "evaluate", "evaluation", "val", "valid", "validate", "validation", "test", "testing"})
STEP_NAME = re.compile(r"step|iter", re.IGNORECASE)
COUNTER_WORDS = re.compile(r"step|iter|idx|index|epoch|batch|count|^i$|^j$|^k$|^n$", re.IGNORECASE)
SMALL_MODULUS = 8


class Guard(NamedTuple):
    then: RegionKind | None
    other: RegionKind | None  # for the else branch and, where the branch ends in a return, for what follows
    text: str
    names: tuple[str, ...] = ()  # FALLBACK: the parameter that was left out


NOTHING = Guard(None, None, "")


def classify(
    node: ast.If, rest: Sequence[ast.stmt], parameters: frozenset[str], switches: Collection[str], where: str, bound: Collection[str] = ()
) -> Guard:
    """The guard that the test is; `rest` follows the `if` in its block, `where` is the function's qualified name.

    `bound` are the names that the innermost loop around it binds.
    """
    test, negated = unwrap(node.test)
    sense = memo(test, negated, node, rest)
    if sense:
        return _guard(RegionKind.MEMO, sense, "only while the cache is empty", test)
    if node.body and isinstance(node.body[-1], ast.Raise):
        return Guard(RegionKind.RAISE, None, "before a raise")
    if OBSERVERS.search(where) and isinstance(test, (ast.Name, ast.Attribute)) and ENABLED.match(chain(test).rsplit(".", 1)[-1]):
        return _guard(RegionKind.DEBUG, -1 if negated else 1, "behind a switch", test)
    for kind, sense, text in _kinds(test, parameters, switches, bound):
        if sense and (kind is not RegionKind.FALLBACK or _fills_in(node, fallback(test, parameters)[0])):
            return _guard(kind, -sense if negated else sense, text, test, parameters)
    return NOTHING


def guard_of(test: ast.expr, switches: Collection[str] = (), parameters: frozenset[str] = frozenset()) -> Guard:
    """The guard that an operand of `and` or `or` is for the operands after it, or the test of a conditional expression for its arms."""
    test, negated = unwrap(test)
    for kind, sense, text in _kinds(test, parameters, switches):
        if sense:
            return _guard(kind, -sense if negated else sense, text, test, parameters)
    return NOTHING


def _fills_in(node: ast.If, name: str) -> bool:
    """Whether the `if` makes up for an argument that was left out, rather than choosing what to do with it."""
    if not name or is_host_copy(name):
        return True
    stored = (part for statement in (*node.body, *node.orelse) for part in ast.walk(statement) if isinstance(part, ast.Name))
    return any(part.id == name and isinstance(part.ctx, ast.Store) for part in stored)


def _guard(kind: RegionKind, sense: int, text: str, test: ast.expr, parameters: frozenset[str] = frozenset()) -> Guard:
    names = (fallback(test, parameters)[0],) if kind is RegionKind.FALLBACK else ()
    return Guard(kind, None, text, names) if sense > 0 else Guard(None, kind, text, names)


def _kinds(
    test: ast.expr, parameters: frozenset[str], switches: Collection[str], bound: Collection[str] = ()
) -> Iterator[tuple[RegionKind, int, str]]:
    """The guards that a test may be, with 1 where its true branch is the guarded one, -1 where the false one is, 0 for neither."""
    yield RegionKind.EXPORT, _sense(test, _exports), "while exporting"
    yield RegionKind.EXPORT, _sense(test, _off_device), "where the work is not on the accelerator"
    yield RegionKind.DEBUG, _sense(test, lambda leaf: int(_is_switch(leaf, switches))), "behind a debug switch"
    yield RegionKind.EVERY_N, _periodic(test), "every n-th step"
    yield RegionKind.ONCE, _sense(test, lambda leaf: _once(leaf) or _meets(leaf, bound)), "in one iteration only"
    yield RegionKind.EVALUATION, _sense(test, _evaluates), "while evaluating"
    name, left_out = fallback(test, parameters)
    yield RegionKind.FALLBACK, left_out, f"only where {name} is left out or no tensor" if name else "only where it is empty"


def _sense(test: ast.expr, leaf: Callable[[ast.expr], int]) -> int:
    """1 where a test holds only if what the leaf says does, -1 where it fails only so, 0 where neither follows."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return -_sense(test.operand, leaf)
    if not isinstance(test, ast.BoolOp):
        return leaf(test)
    senses = {_sense(part, leaf) for part in test.values}
    decisive = 1 if isinstance(test.op, ast.And) else -1
    return decisive if decisive in senses else senses.pop() if len(senses) == 1 else 0


def _exports(leaf: ast.expr) -> int:
    return int(any(word in EXPORT_WORDS or CAPTURING.fullmatch(word) for word in identifiers(leaf)))


def _off_device(leaf: ast.expr) -> int:
    """1 where a test holds only off the accelerator (`x.is_cpu`, `device.type == "mps"`), -1 where it fails only there."""
    if isinstance(leaf, ast.Compare) and len(leaf.ops) == 1 and isinstance(leaf.comparators[0], ast.Constant):
        if not chain(leaf.left).endswith((".device.type", "device_type", ".type")) or not isinstance(leaf.ops[0], (ast.Eq, ast.NotEq)):
            return 0
        on = {"cuda": -1, "cpu": 1, "mps": 1}.get(str(leaf.comparators[0].value), 0)
        return on if isinstance(leaf.ops[0], ast.Eq) else -on
    word = chain(leaf.func if isinstance(leaf, ast.Call) else leaf).rsplit(".", 1)[-1]
    return 1 if OFF_DEVICE.match(word) else -int(bool(ON_DEVICE.match(word)))


def _evaluates(leaf: ast.expr) -> int:
    if isinstance(leaf, (ast.Name, ast.Attribute)) and TRAINING_NAME.search(chain(leaf).rpartition(".")[2]):
        return -1
    if isinstance(leaf, ast.Compare):
        return _names_mode(leaf)
    if isinstance(leaf, ast.Call) and leaf.args:  # `validate(x)` checks something
        return 0
    return int(any(EVALUATION_WORDS.search(word) for word in identifiers(leaf)))


def _names_mode(test: ast.Compare) -> int:
    """`mode == "eval"` and its kin: 1 where the test holds only in evaluation, -1 where it fails only there."""
    words = _compared_words(test)
    negated = isinstance(test.ops[0], (ast.NotEq, ast.NotIn))
    if words and MODE_NAME.search(chain(test.left).rpartition(".")[2]) and isinstance(test.ops[0], (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
        sense = 1 if words <= EVALUATION_MODES else -1 if words <= TRAINING_MODES else 0
        return -sense if negated else sense
    return int(not words and any(EVALUATION_WORDS.search(word) for word in identifiers(test)))


def _compared_words(test: ast.Compare) -> set[str]:
    """The strings on the right of a comparison, if nothing else is there."""
    right = test.comparators[0]
    parts = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else [right]
    words = [part.value.lower() for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return set(words) if len(words) == len(parts) and len(test.ops) == 1 else set()


def _periodic(test: ast.expr) -> int:
    sense = _sense(test, _every_n)
    if not sense and isinstance(test, ast.BoolOp):  # `step % n == 0 or last`: the other part is the rare one
        return int(any(_sense(part, _every_n) > 0 for part in test.values))
    return sense


def is_off_switch(name: str, value: ast.expr) -> bool:
    """Whether a constant switches checks on that are off unless somebody sets an environment variable; a feature's switch is no such."""
    if not CHECKS.search(name):
        return False
    for part in ast.walk(value):
        if isinstance(part, ast.Call) and chain(part.func).endswith(("environ.get", "getenv")):
            default = part.args[1] if len(part.args) > 1 else None
            return default is None or (isinstance(default, ast.Constant) and default.value in OFF)
    return False


def identifiers(test: ast.expr) -> Iterator[str]:
    """Every name and attribute in a test."""
    for part in ast.walk(test):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr


def _is_switch(test: ast.expr, switches: Collection[str]) -> bool:
    if isinstance(test, ast.Name) and test.id in switches:
        return True
    if isinstance(test, ast.Call):
        named = any(isinstance(a, ast.Constant) and isinstance(a.value, str) and DEBUG_WORDS.search(a.value) for a in test.args)
        return named or bool(DEBUG_WORDS.search(chain(test.func).rsplit(".", 1)[-1]))
    if isinstance(test, ast.Compare):
        return _is_switch(test.left, ()) and not isinstance(test.ops[0], (ast.Is, ast.IsNot))
    return isinstance(test, (ast.Name, ast.Attribute)) and bool(DEBUG_WORDS.search(chain(test).rsplit(".", 1)[-1]))


def _every_n(leaf: ast.expr) -> int:
    """1 where the test holds every n-th time, -1 where it fails every n-th time, else 0."""
    if _is_modulo(leaf):
        return -1
    if isinstance(leaf, ast.Compare) and len(leaf.ops) == 1 and (_is_modulo(leaf.left) or _is_modulo(leaf.comparators[0])):
        above_zero = isinstance(leaf.ops[0], ast.Gt) and _is_edge(leaf.comparators[0])
        return -1 if above_zero or isinstance(leaf.ops[0], ast.NotEq) else 1
    return int(any(EVERY_WORDS.search(word) for word in identifiers(leaf)))


def _is_modulo(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_period(node.right)


def _is_period(node: ast.expr) -> bool:
    """Rare enough to be no step of its own: not a small number, and not the rhythm of the work itself, as gradient accumulation is."""
    if any(WORK_RHYTHM.search(word) for word in identifiers(node)):
        return False
    return not (isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value < SMALL_MODULUS)


def _once(test: ast.expr) -> int:
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
        left, right = test.left, test.comparators[0]
        name = chain(left).rsplit(".", 1)[-1] if isinstance(left, (ast.Name, ast.Attribute)) else ""
        if COUNTER_WORDS.search(name) and (_is_edge(right) or (STEP_NAME.search(name) and _is_number(right))):
            return 1 if isinstance(test.ops[0], ast.Eq) else -1
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Lt, ast.LtE)) and _is_few(test):
        return 1
    words = list(identifiers(test))
    if isinstance(test, (ast.Name, ast.Attribute)) and any(ONCE_WORDS.search(word) for word in words):
        return -1 if re.search(r"initiali[sz]ed|is_init$|_built$|_ready$", words[0] if isinstance(test, ast.Name) else test.attr) else 1
    if isinstance(test, ast.Compare) and any(re.search(r"warm_?up", word, re.IGNORECASE) for word in words):
        return 1 if isinstance(test.ops[0], (ast.Lt, ast.LtE)) else -1
    return 0


def _meets(test: ast.expr, bound: Collection[str]) -> int:
    """`step == warm_steps`: a counter of steps meets a number that the loop leaves alone, in one iteration."""
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Eq, ast.NotEq))):
        return 0
    counter, right = test.left, test.comparators[0]
    if not (isinstance(counter, ast.Name) and isinstance(right, (ast.Name, ast.Attribute))):
        return 0
    counts = COUNTER_WORDS.search(counter.id) and STEP_NAME.search(chain(right).rpartition(".")[2])
    free = counter.id in bound and chain(right) not in bound if bound else chain(right).startswith("self.")
    if not (counts and free):
        return 0
    return 1 if isinstance(test.ops[0], ast.Eq) else -1


def _is_few(test: ast.Compare) -> bool:
    """A step counter below a small number."""
    left, right = test.left, test.comparators[0]
    counts = isinstance(left, (ast.Name, ast.Attribute)) and re.search(r"step|iter", chain(left).rsplit(".", 1)[-1], re.IGNORECASE)
    return bool(counts) and isinstance(right, ast.Constant) and isinstance(right.value, int) and right.value < SMALL_MODULUS


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool)


def _is_edge(node: ast.expr) -> bool:
    """0, or something minus 1: the first or the last index."""
    if isinstance(node, ast.Constant):
        return node.value == 0
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.right, ast.Constant) and node.right.value == 1


"""What an `if` says about how often its branches run: caches, every-n tests, debug switches, first rounds, errors, evaluation, export."""
from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from hostlint.facts.chains import chain
from hostlint.facts.fallbacks import fallback, is_host_copy, option, unset
from hostlint.facts.memos import memo, none_test, unwrap
from hostlint.facts.rare import complains, elsewhere, no_number, off_device, on_other
from hostlint.facts.rhythm import first_count, once, periodic
from hostlint.facts.schema import LEFT_OUT, RegionKind
from hostlint.facts.senses import identifiers, sense, where_made, written_out
from hostlint.facts.trees import walk

DEBUG_WORDS = re.compile(
    r"debug|verbose|diagnos|isenabledfor|profil|log_?level|dump|trace_|benchmark|wall_clock|sanity|print_(stats|timing)|"
    r"detect_anomaly|enable_timing|return_trajector|save_(intermediate|trajectory)|record_metrics|env.*check|check_numerics|"
    r"collect_stats|nan_check|check_nan|calibrat|(^|_)(preserve|conserve|save|reduce|low)_?((gpu|cuda)_)?(v?ram|mem(ory)?)(_(mode|usage))?$|"
    r"(^|_)(memory|vram)_sav(er|ing)(_mode)?$",
    re.IGNORECASE,
)
ASKS = frozenset({"get", "is_set", "is_true", "is_enabled", "value"})  # how a switch that is an object is read
# What is there only where somebody asked for it.
WATCHERS = re.compile(
    r"(^|[._])(\w*_)?(recorder|profiler|tracer|dumper|debugger|inspector|telemetry|(stats?|metrics?)_collector)$", re.IGNORECASE
)
OBSERVERS = re.compile(r"prof|timer|timing|trac(e|ing)|debug|log|monitor|stat|meter|watch|clock|probe|inspect|record", re.IGNORECASE)
ENABLED = re.compile(r"^_?(is_)?(enabled?|active|on)$", re.IGNORECASE)
CHECKS = re.compile(
    r"debug|check|assert|verif|valid|log|trac(e|ing)|dump|prof|stat|nan|verbose|diagnos|probe|inspect|monitor", re.IGNORECASE
)
ENVIRONMENT = re.compile(r"(^|\.)envs\.[A-Z][A-Z0-9_]+$")  # a project's table of its environment variables
OFF = frozenset({"0", "", "false", "False", "off", "no", None, False})  # 0 is equal to False
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
TRAINS = "while training"
PERIODS = (RegionKind.EVERY_N, RegionKind.ROUND)
UNUSUAL = "only where something unusual holds"
TRAINING_MODES = frozenset({"train", "training"})
EVALUATION_MODES = frozenset({"eval", "evaluate", "evaluation", "val", "valid", "validate", "validation", "test", "testing"})


class Guard(NamedTuple):
    then: RegionKind | None
    other: RegionKind | None  # for the else branch and, where the branch ends in a return, for what follows
    text: str
    names: tuple[str, ...] = ()  # FALLBACK, OPTION: the parameter that was left out, or given


NOTHING = Guard(None, None, "")


def classify(
    node: ast.If,
    rest: Sequence[ast.stmt],
    parameters: frozenset[str],
    switches: Collection[str],
    where: str,
    bound: Collection[str] = (),
    off: Mapping[str, bool] = MappingProxyType({}),
    held: Callable[[str], ast.expr | None] = lambda _: None,
) -> Guard:
    """The guard that the test is; `rest` follows the `if` in its block, `where` is the function's qualified name.

    `bound` are the names that the innermost loop around it binds, `off` the parameters that are None or False by default, `held` gives
    the test whose outcome a name holds.
    """
    guard = _by_words(node, rest, parameters, switches, where, bound, off)
    if guard is not NOTHING and not guard.names:
        return guard
    spellings = ((written_out(node.test, held), False), (where_made(node.test, held), True))
    for test, made in spellings:
        if test is not node.test:
            spelled = ast.copy_location(ast.If(test, node.body, node.orelse), node)
            found = _by_words(spelled, rest, parameters, switches, where, bound, off)
            if found is not NOTHING and (not made or _is_asked_for(found)):
                return found
    return guard


def _by_words(
    node: ast.If,
    rest: Sequence[ast.stmt],
    parameters: frozenset[str],
    switches: Collection[str],
    where: str,
    bound: Collection[str],
    off: Mapping[str, bool],
) -> Guard:
    """The guard that the test is as it is written."""
    return _where_asked(_classify(node, rest, parameters, switches, where, bound), node.test, off)


def _where_asked(guard: Guard, test: ast.expr, off: Mapping[str, bool]) -> Guard:
    """The guard with the branch that needs an argument which is off by default, or that runs only while a model trains."""
    guard = _where_unset(guard, test, off)
    name, asks = option(test, off)
    if not asks or (guard is not NOTHING and guard.names[:1] != (name,)):
        return _while_training(guard, test)
    text = guard.text or f"only where {name} is given"
    if asks > 0:
        return Guard(RegionKind.OPTION, guard.other, text, guard.names or (name,)) if guard.then is None else guard
    return Guard(guard.then, RegionKind.OPTION, text, guard.names or (name,)) if guard.other is None else guard


def _where_unset(guard: Guard, test: ast.expr, off: Mapping[str, bool]) -> Guard:
    """The guard with the branch that runs only where a switch of the function's own is left off."""
    name, needs = unset(test, off) if guard is NOTHING else ("", 0)
    if not needs:
        return guard
    then, other = (RegionKind.UNSET, None) if needs > 0 else (None, RegionKind.UNSET)
    return Guard(then, other, f"by whether {name} is set", (name,))


def _while_training(guard: Guard, test: ast.expr) -> Guard:
    """The guard with the branch that runs only while a model trains."""
    trains = sense(test, _trains)
    if trains > 0 and guard.then is None:
        return guard._replace(then=RegionKind.TRAINING, text=guard.text or TRAINS)
    return guard._replace(other=RegionKind.TRAINING, text=guard.text or TRAINS) if trains < 0 and guard.other is None else guard


def _classify(
    node: ast.If, rest: Sequence[ast.stmt], parameters: frozenset[str], switches: Collection[str], where: str, bound: Collection[str]
) -> Guard:
    test, negated = unwrap(node.test)
    fills = memo(test, negated, node, rest)
    if fills:
        return _guard(RegionKind.MEMO, fills, "only while the cache is empty", test)
    if node.body and isinstance(node.body[-1], ast.Raise):
        return Guard(RegionKind.RAISE, None, "before a raise")
    compared = isinstance(test, ast.Compare)
    if compared is not negated and first_count(test, (*node.body, *rest)):  # `if n < 1:`, `if not n:`
        return Guard(RegionKind.ONCE, None, "in the first count only")
    if OBSERVERS.search(where) and isinstance(test, (ast.Name, ast.Attribute)) and ENABLED.match(chain(test).rsplit(".", 1)[-1]):
        return _guard(RegionKind.DEBUG, -1 if negated else 1, "behind a switch", test)
    for kind, decides, text in _kinds(test, parameters, switches, bound):
        if kind in PERIODS and decides * (-1 if negated else 1) > 0 and _goes_back(node.body):
            continue
        if decides and (kind is not RegionKind.FALLBACK or _fills_in(node, fallback(test, parameters)[0])):
            return _guard(kind, -decides if negated else decides, text, test, parameters)
    if complains(node.body) or complains(node.orelse):
        return Guard(RegionKind.RARE, None, UNUSUAL) if complains(node.body) else Guard(None, RegionKind.RARE, UNUSUAL)
    return NOTHING


def guard_of(
    test: ast.expr,
    switches: Collection[str] = (),
    parameters: frozenset[str] = frozenset(),
    held: Callable[[str], ast.expr | None] = lambda _: None,
    off: Mapping[str, bool] = MappingProxyType({}),
) -> Guard:
    """The guard that an operand of `and` or `or` is for the operands after it, or the test of a conditional expression for its arms."""
    found = _where_asked(_guard_of(test, switches, parameters), test, off)
    for spelled, made in ((written_out(test, held), False), (where_made(test, held), True)):
        if found is NOTHING and spelled is not test:
            guard = _where_asked(_guard_of(spelled, switches, parameters), spelled, off)
            found = guard if not made or _is_asked_for(guard) else NOTHING
    return found


def _is_asked_for(guard: Guard) -> bool:
    """Whether what is there only sometimes is there for other machines, or for somebody who looks for errors: names of arguments that the
    construction has mean nothing here."""
    return not guard.names and {guard.then, guard.other} <= {RegionKind.EXPORT, RegionKind.DEBUG, None}


def _guard_of(test: ast.expr, switches: Collection[str], parameters: frozenset[str]) -> Guard:
    test, negated = unwrap(test)
    for kind, decides, text in _kinds(test, parameters, switches):
        if decides:
            return _guard(kind, -decides if negated else decides, text, test, parameters)
    return NOTHING


def _goes_back(body: Sequence[ast.stmt]) -> bool:
    """Whether a branch trains: what runs every n-th step is a step of another model, then."""
    return any(isinstance(part, ast.Attribute) and part.attr == "backward" for statement in body for part in walk(statement))


def _fills_in(node: ast.If, name: str) -> bool:
    """Whether the `if` makes up for an argument that was left out, rather than choosing what to do with it."""
    if not name or is_host_copy(name):
        return True
    stored = (part for statement in (*node.body, *node.orelse) for part in walk(statement) if isinstance(part, ast.Name))
    return any(part.id == name and isinstance(part.ctx, ast.Store) for part in stored)


def _guard(kind: RegionKind, sense: int, text: str, test: ast.expr, parameters: frozenset[str] = frozenset()) -> Guard:
    name = fallback(test, parameters)[0] if kind is RegionKind.FALLBACK else ""
    names = (name, LEFT_OUT) if name and none_test(test) == name else (name,) if kind is RegionKind.FALLBACK else ()
    return Guard(kind, None, text, names) if sense > 0 else Guard(None, kind, text, names)


def _kinds(
    test: ast.expr, parameters: frozenset[str], switches: Collection[str], bound: Collection[str] = ()
) -> Iterator[tuple[RegionKind, int, str]]:
    """The guards that a test may be, with 1 where its true branch is the guarded one, -1 where the false one is, 0 for neither."""
    yield RegionKind.EXPORT, sense(test, _exports), "while exporting"
    yield RegionKind.EXPORT, sense(test, off_device), "where the work is not on the accelerator"
    yield RegionKind.DEBUG, sense(test, lambda leaf: int(_is_switch(leaf, switches))), "behind a debug switch"
    yield RegionKind.DEBUG, sense(test, _is_watched), "while somebody watches"
    yield RegionKind.EVERY_N, periodic(test, RegionKind.EVERY_N), "every n-th step"
    yield RegionKind.ROUND, periodic(test, RegionKind.ROUND), "once for each generation of results"
    yield RegionKind.ONCE, once(test, bound), "in one iteration only"
    yield RegionKind.EVALUATION, sense(test, _evaluates), "while evaluating"
    yield RegionKind.RARE, sense(test, on_other) or sense(test, no_number) or sense(test, elsewhere), UNUSUAL
    name, left_out = fallback(test, parameters)
    yield RegionKind.FALLBACK, left_out, f"only where {name} is left out or no tensor" if name else "only where it is empty"


def _exports(leaf: ast.expr) -> int:
    return int(any(word in EXPORT_WORDS or CAPTURING.fullmatch(word) for word in identifiers(leaf)))


def _trains(leaf: ast.expr) -> int:
    if isinstance(leaf, ast.Compare):
        words, op = _compared_words(leaf), leaf.ops[0]
        named = words and words <= TRAINING_MODES and MODE_NAME.search(chain(leaf.left).rpartition(".")[2])
        return {ast.Eq: 1, ast.In: 1, ast.NotEq: -1, ast.NotIn: -1}.get(type(op), 0) if named else 0
    return int(isinstance(leaf, (ast.Name, ast.Attribute)) and bool(TRAINING_NAME.search(chain(leaf).rpartition(".")[2])))


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
        decides = 1 if words <= EVALUATION_MODES else -1 if words <= TRAINING_MODES else 0
        return -decides if negated else decides
    return int(not words and any(EVALUATION_WORDS.search(word) for word in identifiers(test)))


def _compared_words(test: ast.Compare) -> set[str]:
    """The strings on the right of a comparison, if nothing else is there."""
    right = test.comparators[0]
    parts = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else [right]
    words = [part.value.lower() for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return set(words) if len(words) == len(parts) and len(test.ops) == 1 else set()


def is_off_switch(name: str, value: ast.expr) -> bool:
    """Whether a constant switches checks on that are off unless somebody sets an environment variable; a feature's switch is no such."""
    if not CHECKS.search(name):
        return False
    for part in walk(value):
        if isinstance(part, ast.Attribute) and ENVIRONMENT.search(chain(part)):
            return True
        if isinstance(part, ast.Call) and chain(part.func).endswith(("environ.get", "getenv")):
            default = part.args[1] if len(part.args) > 1 else None
            return default is None or (isinstance(default, ast.Constant) and default.value in OFF)
    return False


def _is_watched(leaf: ast.expr) -> int:
    """`self.recorder is not None`: 1 where a test holds only while there is what watches, -1 where it fails only then."""
    if isinstance(leaf, ast.Compare) and len(leaf.ops) == 1 and isinstance(leaf.ops[0], (ast.Is, ast.IsNot)):
        found = none_test(leaf)
        return (1 if isinstance(leaf.ops[0], ast.IsNot) else -1) if found and WATCHERS.search(found) else 0
    return int(isinstance(leaf, (ast.Name, ast.Attribute)) and bool(WATCHERS.search(chain(leaf))))


def _is_switch(test: ast.expr, switches: Collection[str]) -> bool:
    if isinstance(test, ast.Name) and test.id in switches:
        return True
    if isinstance(test, ast.Compare):
        return _is_switch(test.left, ()) and not isinstance(test.ops[0], (ast.Is, ast.IsNot))
    if isinstance(test, ast.Call):
        named = any(isinstance(a, ast.Constant) and isinstance(a.value, str) and DEBUG_WORDS.search(a.value) for a in test.args)
        return named or _is_debug_name(test.func)
    return isinstance(test, (ast.Name, ast.Attribute)) and _is_debug_name(test)


def _is_debug_name(node: ast.expr) -> bool:
    parts = chain(node).split(".")
    return bool(DEBUG_WORDS.search(parts[-2] if parts[-1] in ASKS and len(parts) > 1 else parts[-1]))

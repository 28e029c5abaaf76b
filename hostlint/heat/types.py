"""What a chain stands for, as far as assignments, annotations and constructors say: classes, instances, functions, names outside."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hostlint.facts.schema import FunctionFlag
from hostlint.heat.annotations import named_in
from hostlint.heat.bound import Bindings
from hostlint.heat.filed import Filed
from hostlint.heat.kinds import HANDS_ON, Kind, Type, Types, distinct, handed_on
from hostlint.heat.owned import Owners
from hostlint.scopes import Symbol, SymbolKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hostlint.facts.schema import FunctionOutline
    from hostlint.heat.registries import Registries
    from hostlint.index import ClassId, FunctionId, ProjectIndex

    Given = Mapping[FunctionId, Mapping[str, Iterable[Type]]]  # what parameters hold because a call hands it in

_HEAD = re.compile(r"[A-Za-z_]\w*")
_PART = re.compile(r"\w+|\(\)|\[\]")
_CHAIN = re.compile(r"(\[\])*[A-Za-z_]\w*(\.\w+|\(\)|\[\])*")
# Functions outside the project that give back what they were given.
_IDENTITIES = frozenset(
    {f"builtins.{name}" for name in ("next", "iter", "getattr", "max", "min", "reversed", "sorted", "list", "tuple", "zip", "vars", "type")}
    | {"copy.copy", "copy.deepcopy", "typing.cast"}
)
# They make whatever a configuration names.
_MAKERS = frozenset({"hydra.utils.instantiate", "hydra.utils.call", "hydra.utils.get_object", "importlib.import_module"})
_PARENTS_CALL = "super"
_DEPTH_LIMIT = 50  # names followed one into the other before the last counts as unknown


class _Scope:
    """What the chains mean that begin with a name of one function (of the module: function 0)."""

    __slots__ = ("chains", "function")

    def __init__(self, function: FunctionId) -> None:
        self.function = function
        self.chains: dict[str, Types] = {}


class Typing:
    """Types of chains in the scope of a function. Answers are kept; cyclic definitions end in "unknown", the empty tuple."""

    def __init__(self, index: ProjectIndex, registries: Registries | None = None, given: Given | None = None) -> None:
        self.index = index
        self._filed = Filed(self, registries) if registries is not None else None
        self._given = given or {}
        self._depth = 0
        self._scopes: dict[FunctionId, _Scope] = {}
        self._visible: dict[FunctionId, dict[str, _Scope]] = {}
        self._attributes: dict[tuple[ClassId, str, bool], Types] = {}
        self._returns: dict[FunctionId, Types] = {}
        self._bindings = Bindings(index)
        self._owners = Owners(index)

    def of_chain(self, file: int, function: int, chain: str) -> Types:
        match = _HEAD.match(chain)
        if match is None:
            return self._in_container(file, function, chain) if chain.startswith("[]") else ()
        head = match.group()
        scope = self._visible_from((file, function)).get(head) or self._scope((file, 0))
        found = scope.chains.get(chain)
        return found if found is not None else self._resolve(scope, head, chain)

    def _resolve(self, scope: _Scope, head: str, chain: str) -> Types:
        types = scope.chains.get(head)
        if types is None:
            if self._depth > _DEPTH_LIMIT:
                return ()
            scope.chains[head] = ()
            self._depth += 1
            types = scope.chains[head] = self._head(*scope.function, head)
            self._depth -= 1
        if len(head) < len(chain):
            scope.chains[chain] = ()
            types = scope.chains[chain] = self._walk(types, chain[len(head) :]) if types else ()
        return types

    def _in_container(self, file: int, function: int, chain: str) -> Types:
        return tuple(found._replace(depth=found.depth + 1) for found in self.of_chain(file, function, chain[2:]))

    def _scope(self, fid: FunctionId) -> _Scope:
        scope = self._scopes.get(fid)
        if scope is None:
            scope = self._scopes[fid] = _Scope(fid)
        return scope

    def _visible_from(self, fid: FunctionId) -> dict[str, _Scope]:
        """The scopes of the names that the function and those around it bind; every other name is the module's."""
        visible = self._visible.get(fid)
        if visible is None:
            file, function = fid
            visible = self._visible[fid] = {}
            if function:
                scope = self._scope(fid)
                visible.update(self._visible_from((file, self.index.function(fid).parent)))
                visible.update(dict.fromkeys(self._bindings.of((file, function)), scope))
                visible.update(dict.fromkeys(self.index.defined_in(file, function), scope))
                visible[_PARENTS_CALL] = scope
        return visible

    def returned(self, fid: FunctionId) -> Types:
        """What a call of the function gives: its annotation, unless that names a class of the library's (`-> nn.Module`) and the return
        statements name one of the project's."""
        if fid not in self._returns:
            self._returns[fid] = ()
            outline = self.index.function(fid)
            types = self.annotated(fid[0], fid[1], outline.returns) if outline.returns else ()
            if not any(found.kind is Kind.INSTANCE for found in types):
                chains = [chain for name, chain in outline.assigns if name == "return"]
                types = distinct([found for chain in chains for found in self.of_chain(fid[0], fid[1], chain)]) or types
            self._returns[fid] = types
        return self._returns[fid]

    def annotated(self, file: int, function: int, annotation: str) -> Types:
        return distinct(list(self._annotated(file, function, annotation)))

    def attribute(self, cid: ClassId, name: str, exact: bool) -> Types:
        """What `instance.name` is: a method (and its overrides), or what was stored there."""
        key = (cid, name, exact)
        found = self._attributes.get(key)
        if found is None:
            self._attributes[key] = ()
            found = self._attributes[key] = distinct(list(self._attribute(cid, name, exact)))
        return found

    def methods(self, cid: ClassId, name: str, exact: bool) -> list[FunctionId]:
        """The methods that a call by that name may run: the inherited one first, then what subclasses define or mix in."""
        classes = (cid,) if exact else (cid, *self.index.subclasses(cid))
        found = (self.index.find_method(klass, name) for klass in classes)
        return list(dict.fromkeys(method for method in found if method is not None))

    def is_self(self, outline: FunctionOutline, name: str) -> bool:
        return outline.owner >= 0 and not outline.flags & FunctionFlag.STATIC and bool(outline.params) and outline.params[0].name == name

    def _walk(self, types: Types, rest: str) -> Types:
        """Follow the attributes, calls and subscripts behind a name."""
        parts = _PART.findall(rest)
        position = 0
        while types and position < len(parts):
            part = parts[position]
            if part == "()":
                types = distinct([result for found in types for result in self.called(found)])
            elif part == "[]":
                types = distinct([result for found in types for result in self._item(found)])
            else:
                called = position + 1 < len(parts) and parts[position + 1] == "()"
                same = handed_on(types, part) if called and part in HANDS_ON else None
                owners = self._owners.made_by(types, part) if called else ()
                if owners:
                    types, position = owners, position + 1
                elif same is not None and not self._defines(types, part):
                    types, position = same, position + 1
                else:
                    types = distinct([result for found in types for result in self._member(found, part)])
            position += 1
        return types

    def _head(self, file: int, function: int, name: str) -> Types:
        outline = self.index.files[file].functions[function]
        if name == _PARENTS_CALL:
            owner = self.index.owner((file, function))
            return (Type(Kind.SUPER, owner),) if owner is not None else ()
        if function and self.is_self(outline, name):
            kind = Kind.CLASS if outline.flags & FunctionFlag.CLASS else Kind.INSTANCE
            return (Type(kind, (file, outline.owner)),)
        bound = self._bindings.of((file, function)).get(name) if function else None
        if bound is not None:
            given = self._given.get((file, function), {}).get(name, ())
            return distinct([*self._bound(file, function, bound), *given]) if bound or given else ()
        return distinct(list(self._symbol(self.index.resolve(file, name, function))))

    def _bound(self, file: int, function: int, chains: list[str]) -> Iterator[Type]:
        for chain in chains:
            if chain.startswith(":"):
                yield from self._annotated(file, function, chain[1:])
            else:
                yield from self.of_chain(file, function, chain)

    def _symbol(self, symbol: Symbol | None) -> Iterator[Type]:
        if symbol is None:
            return
        if symbol.kind is SymbolKind.FUNCTION:
            yield Type(Kind.FUNCTION, symbol.id)
        elif symbol.kind is SymbolKind.CLASS:
            yield Type(Kind.CLASS, symbol.id)
        elif symbol.kind is SymbolKind.MODULE:
            yield Type(Kind.MODULE, symbol.id)
        elif symbol.kind is SymbolKind.EXTERNAL:
            yield Type(Kind.EXTERNAL, name=symbol.name)
        else:
            yield from self._global(symbol)

    def _global(self, symbol: Symbol) -> Iterator[Type]:
        """What a module's variable holds; a registry keeps the name that it is known by."""
        bound = self._bound(symbol.file, 0, self._bindings.of((symbol.file, 0)).get(symbol.name, []))
        yield from self._filed.of_global(symbol, bound) if self._filed is not None else bound

    def _of_registry(self, types: Iterable[Type], holder: str) -> Iterable[Type]:
        return self._filed.told(types, holder) if holder and self._filed is not None else types

    def _annotated(self, file: int, function: int, annotation: str) -> Iterator[Type]:
        for name, depth, is_class in named_in(annotation):
            for found in self._symbol(self.index.in_annotation(file, name, function)):
                if found.kind is Kind.CLASS:
                    yield found._replace(depth=depth) if is_class else Type(Kind.INSTANCE, found.target, depth=depth)
                elif found.kind is Kind.EXTERNAL and not is_class:
                    yield Type(Kind.OBJECT, name=found.name, depth=depth)

    def called(self, callee: Type) -> Iterable[Type]:
        if callee.depth:
            return ()
        if callee.kind is Kind.CLASS:
            return (Type(Kind.INSTANCE, callee.target, exact=True),)
        if callee.kind is Kind.FUNCTION:
            return self._of_registry(self.returned(callee.target), callee.name)
        if callee.kind is Kind.INSTANCE:
            returned = [found for method in self.calls_of(callee) for found in self.returned(method)]
            return self._of_registry(returned, callee.name)
        if callee.kind is Kind.FILED:
            return (callee._replace(kind=Kind.MADE),)
        if callee.kind is Kind.EXTERNAL:
            return () if callee.name in _IDENTITIES or callee.name in _MAKERS else (Type(Kind.OBJECT, name=callee.name),)
        return (callee,) if callee.kind is Kind.SUPER else ()

    def calls_of(self, instance: Type) -> list[FunctionId]:
        """What runs where an instance is called: `forward` of a module, else `__call__`."""
        names = ("forward", "__call__") if self.index.is_nn_module(instance.target) else ("__call__",)
        return [method for name in names for method in self.methods(instance.target, name, instance.exact)]

    def _item(self, container: Type) -> Iterable[Type]:
        if container.depth:
            return (container._replace(depth=container.depth - 1),)
        if container.kind is Kind.INSTANCE:
            method = self.index.find_method(container.target, "__getitem__")
            found = self.returned(method) if method is not None else self.attribute(container.target, "", exact=True)
            return self._of_registry(found, container.name)
        return (container,) if container.kind in (Kind.CLASS, Kind.FUNCTION) else ()  # Generic[T], kernel[grid]

    def _defines(self, types: Types, name: str) -> bool:
        return any(found.kind is Kind.INSTANCE and not found.depth and self.index.find_method(found.target, name) for found in types)

    def _member(self, base: Type, name: str) -> Iterable[Type]:
        if base.depth:
            return ()
        if base.kind is Kind.INSTANCE:
            return self._of_registry(self.attribute(base.target, name, base.exact), base.name)
        if base.kind is Kind.CLASS:
            return self._class_member(base.target, name)
        if base.kind is Kind.SUPER:
            found = (self.index.find_method(klass, name) for klass in self.index.bases(base.target) if not isinstance(klass, str))
            return [Type(Kind.FUNCTION, method) for method in found if method is not None][:1]
        if base.kind is Kind.MODULE:
            return list(self._symbol(self.index.module_attribute(base.target[0], name)))
        if base.kind is Kind.EXTERNAL:
            return (Type(Kind.EXTERNAL, name=f"{base.name}.{name}"),)
        return (Type(Kind.OBJECT, name=f"{base.name}.{name}"),) if base.kind is Kind.OBJECT else ()

    def _class_member(self, cid: ClassId, name: str) -> Iterable[Type]:
        found = [Type(Kind.FUNCTION, method) for method in self.methods(cid, name, exact=False)]
        return found or [*self._symbol(self.index.member(cid, name)), *self._in_table(cid, name)]

    def _in_table(self, cid: ClassId, name: str) -> Iterable[Type]:
        return self._filed.of_attribute(cid, name) if self._filed is not None else ()

    def _attribute(self, cid: ClassId, name: str, exact: bool) -> Iterator[Type]:
        methods = self.methods(cid, name, exact)
        for method in methods:
            if self.index.function(method).flags & FunctionFlag.PROPERTY:
                yield from self.returned(method)
            else:
                yield Type(Kind.FUNCTION, method)
        for fid, node, chain in self.index.attribute_stores(cid, name):
            yield from self._stored(fid, node, chain)
        yield from self._in_table(cid, name)
        annotation = self.index.attribute_annotation(cid, name)
        if annotation is not None:
            yield from self._annotated(annotation[0][0], 0, annotation[1])
        nested = self.index.member(cid, name) if not methods else None
        if nested is not None and nested.kind is SymbolKind.CLASS:
            yield Type(Kind.CLASS, nested.id)

    def _stored(self, fid: FunctionId, node: int, chain: str) -> Iterator[Type]:
        if not chain:
            return
        if _CHAIN.fullmatch(chain):
            for found in self.of_chain(fid[0], fid[1], chain):
                yield found
                if found.kind is Kind.CLASS and not found.depth and chain[-1] not in ")]":  # `self.x: X`, or the class itself
                    yield Type(Kind.INSTANCE, found.target)
        else:
            yield from self._annotated(fid[0], fid[1], chain)

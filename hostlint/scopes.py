"""What a dotted name means at a place of the project: scopes, imports, star imports and re-exports, followed to their end."""
from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.facts.schema import FileOutline, FunctionOutline

FunctionId = tuple[int, int]  # (file index, function index)
ClassId = tuple[int, int]  # (file index, class index)

_BUILTINS = frozenset(dir(builtins))
_SOURCES = "csrc"  # the sources of a package that is built: they are imported under its name
# A folder without __init__.py may stand on sys.path, but never so as to shadow these.
_NEVER_LOCAL = sys.stdlib_module_names | {"torch", "torchvision", "torchaudio", "numpy", "transformers", "triton", "PIL", "tqdm", "scipy"}

_DEPTH_LIMIT = 100  # re-exports followed before a name counts as unknown


class SymbolKind(Enum):
    FUNCTION = "function"
    CLASS = "class"
    MODULE = "module"
    GLOBAL = "global"
    EXTERNAL = "external"


@dataclass(frozen=True, slots=True)
class Symbol:
    """What a name stands for. `item` is a function index, a class index or the node of a global in its module's value graph."""

    kind: SymbolKind
    file: int = -1
    item: int = -1
    name: str = ""  # EXTERNAL: the dotted name with aliases expanded ("torch.nn.functional.pad"); GLOBAL: its name in its module

    @property
    def id(self) -> tuple[int, int]:
        return (self.file, self.item)


class _Names:
    """The names of one file, by the scope that binds them; a string is an import that is still to be followed."""

    __slots__ = ("class_scopes", "function_scopes", "module")

    def __init__(self, file: int, outline: FileOutline) -> None:
        self.module: dict[str, Symbol | str] = {name: Symbol(SymbolKind.GLOBAL, file, node, name) for name, node in outline.globals}
        self.module.update(outline.imports)
        self.function_scopes: dict[int, dict[str, Symbol]] = {}
        self.class_scopes: dict[int, dict[str, Symbol]] = {}
        for function in outline.functions[1:]:
            if function.owner < 0 and function.name != "<lambda>":
                self._bind(function.parent, function.name, Symbol(SymbolKind.FUNCTION, file, function.index))
        self._bind_classes(file, outline)

    def _bind(self, function: int, name: str, symbol: Symbol) -> None:
        if function == 0:
            self.module[name] = symbol
        else:
            self.function_scopes.setdefault(function, {})[name] = symbol

    def _bind_classes(self, file: int, outline: FileOutline) -> None:
        by_name = {klass.qualname: klass.index for klass in outline.classes}
        functions = {f.qualname: f.index for f in outline.functions} if any("." in name for name in by_name) else {}
        for klass in outline.classes:
            symbol = Symbol(SymbolKind.CLASS, file, klass.index)
            outer = klass.qualname.rpartition(".")[0]
            if outer in by_name:
                self.class_scopes.setdefault(by_name[outer], {})[klass.name] = symbol
            else:
                self._bind(functions.get(outer, 0), klass.name, symbol)


class Scopes:
    """Resolves dotted names; every answer is kept, cycles of imports end."""

    def __init__(self, files: Sequence[FileOutline]) -> None:
        self.files = files
        self._modules: dict[str, int] = {}
        for index, outline in enumerate(files):
            self._modules.setdefault(outline.module, index)
        self._modules = {**_script_folders(files), **self._modules}
        self._built = _built_elsewhere(files)
        self._roots = frozenset(module.partition(".")[0] for module in self._modules)
        self._names: dict[int, _Names] = {}
        self._module_symbols: dict[tuple[int, str], Symbol | None] = {}
        self._following: set[tuple[int, str]] = set()
        self._depth = 0
        self._resolved: dict[tuple[int, int, str], Symbol | None] = {}

    def resolve(self, file: int, dotted: str, function: int = 0) -> Symbol | None:
        """What `dotted` means in that function's scope; None where it is a local value or not to be known."""
        key = (file, function, dotted)
        if key not in self._resolved:
            head, _, rest = dotted.partition(".")
            self._resolved[key] = self._attribute(self._name(file, head, function), rest)
        return self._resolved[key]

    def in_annotation(self, file: int, dotted: str, function: int = 0) -> Symbol | None:
        """What `dotted` means in an annotation of that function: the classes that a method's own class holds come first."""
        owner = self.files[file].functions[function].owner
        head, _, rest = dotted.partition(".")
        nested = self._names_of(file).class_scopes.get(owner, {}).get(head) if owner >= 0 else None
        if nested is not None and nested.kind is SymbolKind.CLASS:
            return self._attribute(nested, rest)
        return self.resolve(file, dotted, function)

    def defined_in(self, file: int, function: int) -> list[str]:
        """The names that the function itself defines or imports (parameters and assignments apart)."""
        nested = self._names_of(file).function_scopes.get(function, {})
        return [*nested, *(local for local, _ in self.files[file].functions[function].imports)]

    def member(self, klass: ClassId, name: str) -> Symbol | None:
        """A method or nested class that the class's own body holds."""
        nested = self._names_of(klass[0]).class_scopes.get(klass[1], {}).get(name)
        if nested is not None:
            return nested
        methods = dict(self.files[klass[0]].classes[klass[1]].methods)
        return Symbol(SymbolKind.FUNCTION, klass[0], methods[name]) if name in methods else None

    def _names_of(self, file: int) -> _Names:
        if file not in self._names:
            self._names[file] = _Names(file, self.files[file])
        return self._names[file]

    def _name(self, file: int, name: str, function: int) -> Symbol | None:
        functions = self.files[file].functions
        while function:
            outline = functions[function]
            for local, target in outline.imports:
                if local == name:
                    return self.absolute(target)
            nested = self._names_of(file).function_scopes.get(function, {}).get(name)
            if nested is not None:
                return nested
            if _binds_locally(outline, name):
                return None
            function = outline.parent
        return self._module_name(file, name)

    def _module_name(self, file: int, name: str) -> Symbol | None:
        key = (file, name)
        if key in self._module_symbols:
            return self._module_symbols[key]
        if key in self._following:
            return None
        outermost = not self._following
        self._following.add(key)  # until the outermost question is answered: each module is asked once, whatever cycles there are
        self._depth += 1
        symbol = self._follow(file, name) if self._depth < _DEPTH_LIMIT else None
        self._depth -= 1
        if symbol is not None:
            self._module_symbols[key] = symbol
        if outermost:
            if symbol is None:
                self._module_symbols.update((asked, self._module_symbols.get(asked)) for asked in self._following)
            self._following.clear()
        return symbol

    def _follow(self, file: int, name: str) -> Symbol | None:
        found = self._names_of(file).module.get(name)
        if isinstance(found, Symbol):
            return found
        if found is not None:
            return self.absolute(found)
        outside = []
        for star in self.files[file].stars:
            module = self.absolute(star)
            if module is None or module.kind is not SymbolKind.MODULE:
                outside.append(star)
                continue
            symbol = self._module_name(module.file, name)
            if symbol is not None and not symbol.name.startswith("builtins."):
                return symbol
        if name in _BUILTINS:
            return Symbol(SymbolKind.EXTERNAL, name=f"builtins.{name}")
        return Symbol(SymbolKind.EXTERNAL, name=f"{outside[0]}.{name}") if len(outside) == 1 else None

    def absolute(self, dotted: str) -> Symbol | None:
        """An absolute dotted name: an attribute of the module that the rest names, else through the first module on its way."""
        root, _, below = dotted.partition(".")
        if root not in self._roots:
            module, _, name = below.rpartition(".")
            built = self.module_attribute(self._built[module], name) if module in self._built else None
            return built or Symbol(SymbolKind.EXTERNAL, name=dotted)
        # The parent module first: `from pkg.linear import f` means the module pkg.linear, also where pkg exports a function `linear`.
        parent, _, name = dotted.rpartition(".")
        file = self._modules.get(parent)
        symbol = self.module_attribute(file, name) if file is not None else None
        if symbol is not None:
            return symbol
        for end in _prefix_ends(dotted):
            file = self._modules.get(dotted[:end])
            if file is not None:
                return self._attribute(Symbol(SymbolKind.MODULE, file), dotted[end + 1 :])
        return Symbol(SymbolKind.EXTERNAL, name=dotted)

    def _attribute(self, symbol: Symbol | None, rest: str) -> Symbol | None:
        while rest and symbol is not None:
            if symbol.kind is SymbolKind.EXTERNAL:
                return self.absolute(f"{symbol.name}.{rest}")
            name, _, rest = rest.partition(".")
            if symbol.kind is SymbolKind.MODULE:
                symbol = self.module_attribute(symbol.file, name)
            elif symbol.kind is SymbolKind.CLASS:
                symbol = self.member(symbol.id, name)
            else:
                return None
        return symbol

    def module_attribute(self, file: int, name: str) -> Symbol | None:
        """What `module.name` is: a name of the module, else a module below it."""
        symbol = self._module_name(file, name)
        if symbol is not None and not symbol.name.startswith("builtins."):
            return symbol
        submodule = self._modules.get(f"{self.files[file].module}.{name}")
        return None if submodule is None else Symbol(SymbolKind.MODULE, submodule)


def _prefix_ends(dotted: str) -> Iterator[int]:
    end = dotted.find(".")
    while end >= 0:
        yield end
        end = dotted.find(".", end + 1)
    yield len(dotted)


def _binds_locally(function: FunctionOutline, name: str) -> bool:
    return any(param.name == name for param in function.params) or any(local == name for local, _ in function.assigns)


def _script_folders(files: Sequence[FileOutline]) -> dict[str, int]:
    """Second names of modules in folders that are no packages (src/, scripts/): such a folder may itself stand on sys.path."""
    packages = {outline.module for outline in files if outline.path.endswith("__init__.py")}
    aliases: dict[str, int] = {}
    for index, outline in enumerate(files):
        parts = outline.module.split(".")
        for start in range(1, len(parts)):
            if ".".join(parts[:start]) in packages:
                break
            if parts[start] not in _NEVER_LOCAL:
                aliases.setdefault(".".join(parts[start:]), index)
    return aliases


def _built_elsewhere(files: Sequence[FileOutline]) -> dict[str, int]:
    """Modules below a folder of sources that a build installs in a package of another name, by what follows that name."""
    found: dict[str, int] = {}
    for index, outline in enumerate(files):
        _, marked, below = f".{outline.module}".rpartition(f".{_SOURCES}.")
        if marked and "." in below:  # a single name could be anybody's
            found.setdefault(below, index)
    return found

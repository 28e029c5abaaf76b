"""The project as one whole: what names mean across files, and what classes inherit, override and store."""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hostlint.replaced import replaced_forwards
from hostlint.scopes import ClassId, FunctionId, Scopes, Symbol, SymbolKind

if TYPE_CHECKING:
    from hostlint.facts.schema import ClassOutline, FileOutline, FunctionOutline

__all__ = ["ClassId", "FunctionId", "ProjectIndex", "Symbol", "SymbolKind"]

AttributeStore = tuple[FunctionId, int, str]  # the storing function, the value's node in its graph, chain or annotation

# Frameworks whose modules do not run torch kernels, and tools whose "Module" is a syntax tree.
_OTHER_MODULES = ("flax.", "jax.", "haiku.", "tensorflow.", "keras.", "paddle.", "ast.", "libcst.", "types.", "mlx.")
_MODULE_ENDINGS = ("Module", "ModelMixin", "PreTrainedModel", "ModuleMixin")
_MODELS = re.compile(r"([123]D(Condition)?|UNet|ControlNet)Model$")  # as libraries name whole models
_LIBRARIES = ("diffusers.", "transformers.", "timm.", "torchvision.", "open_clip.")  # whose parts are modules
_PARTS = re.compile(
    r"(Attention|Attn|Transformer\w*Block|(Encoder|Decoder)(Layer|Block)?|RMSNorm|LayerNorm|M[Ll][Pp]|FeedForward|Embeddings?|RotaryPosEmbed|"
    r"ForCausalLM|ForConditionalGeneration)$"
)
_NOT_LAYERS = frozenset({"Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer", "ParameterList", "ParameterDict"})


class ProjectIndex(Scopes):
    """Every answer is computed when first asked for and kept."""

    def __init__(self, files: Sequence[FileOutline]) -> None:
        super().__init__(files)
        self._bases: dict[ClassId, tuple[ClassId | str, ...]] = {}
        self._mro: dict[ClassId, tuple[ClassId, ...]] = {}
        self._methods: dict[ClassId, dict[str, int]] = {}
        self._stores: dict[ClassId, dict[str, list[AttributeStore]]] = {}
        self._children: dict[ClassId, list[ClassId]] | None = None
        self._subclasses: dict[ClassId, tuple[ClassId, ...]] = {}
        self._modules_known: dict[ClassId, bool] = {}
        self._replaced: frozenset[FunctionId] | None = None

    def function(self, fid: FunctionId) -> FunctionOutline:
        return self.files[fid[0]].functions[fid[1]]

    def klass(self, cid: ClassId) -> ClassOutline:
        return self.files[cid[0]].classes[cid[1]]

    def owner(self, fid: FunctionId) -> ClassId | None:
        """The class whose `self` the function sees: its own, or that of the method it is nested in."""
        index = fid[1]
        functions = self.files[fid[0]].functions
        while index:
            if functions[index].owner >= 0:
                return (fid[0], functions[index].owner)
            index = functions[index].parent
        return None

    def mro(self, cid: ClassId) -> tuple[ClassId, ...]:
        """The class and its project bases, depth first, without repeats."""
        if cid not in self._mro:
            order: dict[ClassId, None] = {}
            self._collect(cid, order)
            self._mro[cid] = tuple(order)
        return self._mro[cid]

    def external_bases(self, cid: ClassId) -> frozenset[str]:
        return frozenset(base for klass in self.mro(cid) for base in self.bases(klass) if isinstance(base, str))

    def bases(self, cid: ClassId) -> tuple[ClassId | str, ...]:
        """Direct bases: project classes, or dotted names of others."""
        if cid not in self._bases:
            self._bases[cid] = ()  # a class that names itself as its base ends here
            scope = self._defining_function(cid)
            self._bases[cid] = tuple(self._base(cid[0], chain, scope) for chain in self.klass(cid).bases if chain != "?")
        return self._bases[cid]

    def subclasses(self, cid: ClassId) -> tuple[ClassId, ...]:
        """Every class below, nearest first."""
        if cid not in self._subclasses:
            children = self._children_of_all()
            order: dict[ClassId, None] = dict.fromkeys(children.get(cid, ()))
            queue = list(order)
            for klass in queue:
                fresh = [child for child in children.get(klass, ()) if child not in order and child != cid]
                order.update(dict.fromkeys(fresh))
                queue.extend(fresh)
            self._subclasses[cid] = tuple(order)
        return self._subclasses[cid]

    def find_method(self, cid: ClassId, name: str) -> FunctionId | None:
        for klass in self.mro(cid):
            index = self.methods(klass).get(name)
            if index is not None:
                return (klass[0], index)
        return None

    def overrides(self, cid: ClassId, name: str) -> tuple[FunctionId, ...]:
        """The definitions of the method in subclasses."""
        found = ((klass[0], self.methods(klass).get(name)) for klass in self.subclasses(cid))
        return tuple((file, index) for file, index in found if index is not None)

    def methods(self, cid: ClassId) -> dict[str, int]:
        if cid not in self._methods:
            self._methods[cid] = dict(self.klass(cid).methods)
        return self._methods[cid]

    def attribute_stores(self, cid: ClassId, name: str) -> tuple[AttributeStore, ...]:
        """Every `self.name = …` of the class and its bases; where there is none, of its subclasses."""
        for classes in (self.mro(cid), self.subclasses(cid)):
            stores = tuple(store for klass in classes for store in self._stores_of(klass).get(name, ()))
            if stores:
                return stores
        return ()

    def attribute_annotation(self, cid: ClassId, name: str) -> tuple[ClassId, str] | None:
        """The class-level annotation of an attribute (a dataclass field), with the class that writes it."""
        for klass in self.mro(cid):
            for attribute, annotation in self.klass(klass).annotations:
                if attribute == name:
                    return (klass, annotation)
        return None

    def is_nn_module(self, cid: ClassId) -> bool:
        if cid not in self._modules_known:
            self._modules_known[cid] = any(is_module_name(base) for base in self.external_bases(cid))
        return self._modules_known[cid]

    def replaces_forward(self, fid: FunctionId) -> bool:
        """Whether the function is put in the place of a module's forward."""
        if self._replaced is None:
            self._replaced = replaced_forwards(self)
        return fid in self._replaced

    def inherits_layers(self, cid: ClassId) -> bool:
        """Whether a library's class, whose code is not seen, brings layers and parameters."""
        return any(is_library_model(base) for base in self.external_bases(cid))

    def member(self, klass: ClassId, name: str) -> Symbol | None:
        for each in self.mro(klass):
            found = super().member(each, name)
            if found is not None:
                return found
        return None

    def _collect(self, cid: ClassId, order: dict[ClassId, None]) -> None:
        if cid in order:
            return
        order[cid] = None
        for base in self.bases(cid):
            if not isinstance(base, str):
                self._collect(base, order)

    def _base(self, file: int, chain: str, scope: int) -> ClassId | str:
        name = chain.partition("[")[0].removesuffix("()")  # Generic[T] and with_metaclass(Meta)
        symbol = self.resolve(file, name, scope)
        if symbol is not None and symbol.kind is SymbolKind.CLASS:
            return symbol.id
        return symbol.name if symbol is not None and symbol.kind is SymbolKind.EXTERNAL else name

    def _defining_function(self, cid: ClassId) -> int:
        methods = self.klass(cid).methods
        return self.files[cid[0]].functions[methods[0][1]].parent if methods else 0

    def _children_of_all(self) -> dict[ClassId, list[ClassId]]:
        if self._children is None:
            children: dict[ClassId, list[ClassId]] = {}
            for file, outline in enumerate(self.files):
                for klass in outline.classes:
                    for base in self.bases((file, klass.index)):
                        if not isinstance(base, str):
                            children.setdefault(base, []).append((file, klass.index))
            self._children = children
        return self._children

    def _stores_of(self, cid: ClassId) -> dict[str, list[AttributeStore]]:
        if cid not in self._stores:
            stores: dict[str, list[AttributeStore]] = {}
            for name, function, node, chain in self.klass(cid).attributes:
                stores.setdefault(name, []).append(((cid[0], function), node, chain))
            self._stores[cid] = stores
        return self._stores[cid]


def is_module_name(dotted: str) -> bool:
    """Whether a class of that external name is (a subclass of) torch.nn.Module, as far as its name says."""
    last = dotted.rpartition(".")[2]
    if dotted.startswith(_OTHER_MODULES) or last.endswith("DataModule"):
        return False
    if dotted.startswith("torch.nn.") and last.lstrip("_")[:1].isupper():  # `torch.nn.modules.loss._Loss`
        return last not in _NOT_LAYERS
    return last.endswith(_MODULE_ENDINGS) or is_library_model(dotted)


def is_library_model(dotted: str) -> bool:
    """Whether a class of that external name is a model or a part of one that a library defines, with layers and parameters of its own."""
    last = dotted.rpartition(".")[2]
    return bool(_MODELS.search(last)) or (dotted.startswith(_LIBRARIES) and bool(_PARTS.search(last)))

"""The lines that build a mask, from its condition or from its cells, as a tensor or as an array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import indent

from torch import Tensor

from headlight.masks.language import TOKEN_FACTS
from headlight.masks.translations.code_lines import WIDTH, commented, wrapped
from headlight.masks.translations.mask_to_translate import MaskToTranslate, names_in


@dataclass(frozen=True)
class Library:
    """A library of arrays, and its spelling of what building a mask takes.

    Attributes:
        name: the module.
        array: the function that makes an array of a list.
        boolean: the type of booleans.
        broadcast: brings ``{code}`` to the size ``{sizes}``.
    """

    name: str
    array: str
    boolean: str
    broadcast: str

    def vector(self, values: Sequence[int | bool]) -> str:
        """A 1-D array of integers, or of booleans written as 0 and 1."""
        numbers = ", ".join(str(int(value)) for value in values)
        kind = f", dtype={self.boolean}" if isinstance(values[0], bool) else ""
        line = f"{self.array}([{numbers}]{kind})"
        return line if len(line) <= WIDTH - 24 else f"{self.array}([\n{wrapped(numbers)}\n]{kind})"


TORCH = Library("torch", "torch.tensor", "torch.bool", "({code}).expand({sizes})")
NUMPY = Library("np", "np.array", "bool", "np.broadcast_to({code}, ({sizes}))")


def allowed_lines(mask: MaskToTranslate, library: Library) -> list[str]:
    """Lines that build ``allowed``, True = may attend: (Tq, Tk), or (H, Tq, Tk) where heads differ."""
    if mask.shared_condition is not None:
        return condition_lines(mask.shared_condition, mask, library)
    return cell_lines(mask, library)


def condition_lines(condition: str, mask: MaskToTranslate, library: Library) -> list[str]:
    """Lines that build ``allowed``, (Tq, Tk), from a condition on q and k."""
    is_square = mask.n_queries == mask.n_keys
    n_rows, n_columns = ("T", "T") if is_square else ("Tq", "Tk")
    # PyTorch and NumPy call what a condition uses of them by the same name: where.
    code = condition.replace("torch.", f"{library.name}.")
    if len(names_in(code, ("q", "k"))) < 2:
        code = library.broadcast.format(code=code, sizes=f"{n_rows}, {n_columns}")
    return [
        f"T = {mask.n_queries}" if is_square else f"Tq, Tk = {mask.n_queries}, {mask.n_keys}",
        *name_lines(condition, mask, library),
        f"q = {library.name}.arange({n_rows})[:, None]",
        f"k = {library.name}.arange({n_columns})[None, :]",
        *commented(f"allowed = {code}", "True = may attend"),
    ]


def name_lines(condition: str, mask: MaskToTranslate, library: Library) -> list[str]:
    """A line for each name that a condition asks for besides q and k."""
    sizes = {"n_queries": mask.n_queries, "n_keys": mask.n_keys}
    facts = names_in(condition, TOKEN_FACTS)
    return [
        *(f"{name} = {sizes[name]}" for name in names_in(condition, sizes)),
        *(f"{name} = {library.vector(getattr(mask.facts, TOKEN_FACTS[name]))}" for name in facts),
    ]


def cell_lines(mask: MaskToTranslate, library: Library) -> list[str]:
    """Lines that build ``allowed`` from a picture of its cells, or from one for each kind of head."""
    read = f'{library.array}([[cell == "1" for cell in row] for row in rows.split()])'
    if not mask.is_per_head:
        return [f'rows = """\n{_picture(mask.allowed[0])}\n"""', f"allowed = {read}  # True = may attend"]
    of_heads = [_picture(head) for head in mask.allowed]
    pictures = list(dict.fromkeys(of_heads))
    heads = ", ".join(str(pictures.index(picture)) for picture in of_heads)
    return [
        "pictures = [",
        *(f'    """\n{indent(picture, "    ")}\n    """,' for picture in pictures),
        "]",
        f"planes = [{read} for rows in pictures]",
        f"heads = [{heads}]  # the picture of each",
        f"allowed = {library.name}.stack([planes[head] for head in heads])  # (H, Tq, Tk), True = may attend",
    ]


def _picture(allowed: Tensor) -> str:
    return "\n".join("".join("1" if cell else "." for cell in row) for row in allowed.tolist())

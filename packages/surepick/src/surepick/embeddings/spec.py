"""How another package gives an embedding a name."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from surepick.core.plugins import EMBEDDINGS, plugin, plugin_names
from surepick.embeddings.base import ArmEmbedding
from surepick.errors import InvalidInput
from surepick.text import did_you_mean, quoted


@dataclass(frozen=True, slots=True)
class EmbeddingSpec:
    """How a name becomes an embedding. The entry point of another package in `surepick.embeddings` gives one.

    Args:
        path: of what makes it, "module:Class": called with the features, shape (K, D), and the options by name, it
            gives an `ArmEmbedding`, whose `traits.spec` has options that make it again.
        options: the names of its options.
        summary: one line for people who choose.
    """

    path: str
    options: tuple[str, ...]
    summary: str

    def make(self, features: Any, options: dict[str, Any]) -> ArmEmbedding:
        """The embedding of the rows of features; its options are taken out of `options`."""
        module, _, name = self.path.partition(":")
        own = {option: options.pop(option) for option in self.options if option in options}
        made: ArmEmbedding = getattr(import_module(module), name)(features, **own)
        return made


def embedding_spec(name: object) -> EmbeddingSpec:
    """The embedding that an installed package adds under this name."""
    found = plugin(EMBEDDINGS, name, EmbeddingSpec)
    if found is None:
        known = plugin_names(EMBEDDINGS)
        there = f"those that are: {', '.join(known)}." if known else "none is."
        raise InvalidInput(f"no embedding {quoted(name)} is installed; {there}{did_you_mean(name, known)}")
    return found

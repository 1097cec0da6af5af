"""LACUNA in words: invented worlds told in conversations, questions about them, and exactly known answers."""

from typing import Literal, get_args

Ability = Literal["fact", "update", "set", "count", "time", "hops", "rule", "withdrawal", "abstention", "needle"]
ABILITIES: tuple[Ability, ...] = get_args(Ability)

"""`graphiti`: Graphiti (package graphiti-core), a temporal knowledge graph, in a separate process.

As documented, every record is one episode, and so is every session of a conversation; Graphiti extracts entities and
facts from it with a model. As a mere store, records are facts that are saved as they are. The graph is stored in an
embedded Kuzu database, a new one for each scope; `url` takes a Neo4j or FalkorDB server instead.
"""

from __future__ import annotations

import gc
import os
import re
import secrets
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from eirkit.errors import StoreError, UnknownNameError, UsageError
from eirkit.lacuna.memories.adapter import VendorWarnings
from eirkit.lacuna.memories.memory import (
    AS_DOCUMENTED,
    STORE_ONLY,
    Item,
    MemorySystem,
    MemoryUsage,
    Profile,
    Requirements,
    check_profile,
    memories,
)
from eirkit.lacuna.memories.temporary_directory import StoreDirectory
from eirkit.lacuna.memories.validity import EndedText
from eirkit.lacuna.models.message import Message

DIMENSIONS = 384  # of MiniLM, which the endpoint serves
FIRST = datetime(2024, 1, 1, tzinfo=UTC)  # fixed timestamps, one minute apart, so that runs are reproducible
FALKORDB_PORT = 6379
RETURNS = ("facts", "episodes")
NEO4J, FALKORDB = ("bolt", "neo4j", "bolt+s", "neo4j+s"), ("falkor", "redis")  # URL schemes of servers
USER, PASSWORD = "GRAPHITI_USER", "GRAPHITI_PASSWORD"  # environment variables with the credentials of such a server
_SPEAKER = re.compile(r"^(?=(?:user|assistant): )", re.MULTILINE)


@memories.add("graphiti")
class Graphiti(MemorySystem):
    """Graphiti with an embedded Kuzu graph, or a server's.

    Args:
        endpoint: base URL of an OpenAI-compatible server for its model and its embeddings.
        min_score: minimum similarity of semantic search results; None for Graphiti's default, 0.6.
        returns: facts, or episodes: the records that the found facts came from, word for word.
        url: bolt://HOST:7687 (Neo4j) or falkor://HOST:6379 (FalkorDB); its user and password are taken from
            GRAPHITI_USER and GRAPHITI_PASSWORD.
        dimensions: size of the embeddings from the endpoint.
        profile: as-documented or store-only.
    """

    requirements = Requirements(
        packages=("graphiti_core", "kuzu", "httpx"),
        installs=(("graphiti-core[falkordb,kuzu]==0.31.1", "kuzu==0.11.3", "httpx>=0.27,<1"),),
        endpoint=("model", "embedding"),
        variables=(USER, PASSWORD),
        services=("a Neo4j or FalkorDB server, only where url names one",),
    )
    profiles: ClassVar[Mapping[str, Profile]] = {
        AS_DOCUMENTED: Profile(
            "each record or session is an episode; its own extraction, deduplication and invalidation of facts, and "
            "its search, which returns facts, in conversations with the days on which they began and ended",
            "other search recipes: node summaries, communities, and a cross-encoder, which needs a model with logprobs",
            passages=10,
            passages_from="DEFAULT_SEARCH_LIMIT of Graphiti.search, graphiti-core 0.31.1",
        ),
        STORE_ONLY: Profile(
            "each message is a fact saved as it is, and the same search; a record written again is deleted first",
            "episodes, extraction, deduplication and invalidation: no model",
            passages=10,
            passages_from="DEFAULT_SEARCH_LIMIT of Graphiti.search, graphiti-core 0.31.1",
        ),
    }

    def __init__(
        self,
        *,
        endpoint: str,
        min_score: float | None = None,
        returns: str = "facts",
        url: str | None = None,
        dimensions: int = DIMENSIONS,
        profile: str = AS_DOCUMENTED,
    ) -> None:
        self.profile = check_profile(Graphiti, profile)
        if returns not in RETURNS:
            raise UnknownNameError("way of returning", returns, RETURNS)
        if url is not None:
            parts = urlsplit(url)
            if parts.username or parts.password:
                raise UsageError(f"its url contains a user name; set {USER} and {PASSWORD} instead")
            if parts.scheme not in NEO4J + FALKORDB:
                raise UsageError(f"its url starts with {parts.scheme!r}; use bolt://, neo4j:// or falkor://")
        self.endpoint, self.min_score, self.returns = endpoint, min_score, returns
        self.url, self.dimensions = url, dimensions
        self._directory = StoreDirectory("graphiti")
        self._warnings = VendorWarnings("graphiti_core")
        self._graph: Any = None
        self._group = ""
        self._episodes: dict[str, list[str]] = {}  # label → its episodes, oldest first
        self._saved: dict[str, Any] = {}  # label → its fact, as a mere store
        self._written = 0

    async def setup(self) -> None:
        os.environ.update({"GRAPHITI_TELEMETRY_ENABLED": "false", "EMBEDDING_DIM": str(self.dimensions)})
        self._directory.create()
        self._warnings.listen()
        import graphiti_core  # noqa: F401 - slow to import, which must not count as latency of a run

    async def reset(self, scope: str) -> None:
        await self._close()
        self._group = f"eirkit-{secrets.token_hex(8)}"  # a scope may contain characters that are not allowed in a group
        self._episodes, self._saved, self._written = {}, {}, 0
        self._graph = self._open(await self._driver())

    async def _driver(self) -> Any:
        if self.url is not None:
            return await _connect(self.url, self._group)
        from graphiti_core.driver.driver import GraphProvider
        from graphiti_core.driver.kuzu_driver import KuzuDriver
        from graphiti_core.graph_queries import get_fulltext_indices

        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # Kuzu is deprecated
            driver = KuzuDriver(str(self._path()))
        driver._database = self._group  # Graphiti compares it with the group; Kuzu's driver does not set it
        for query in get_fulltext_indices(GraphProvider.KUZU):  # Kuzu's driver does not create them
            await driver.execute_query(query)
        return driver

    def _path(self) -> Path:
        return self._directory.path / self._group

    def _open(self, driver: Any) -> Any:
        from graphiti_core import Graphiti as Graph
        from graphiti_core.cross_encoder.openai_reranker_client import OpenAIRerankerClient
        from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
        from graphiti_core.llm_client.config import LLMConfig
        from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient

        model = LLMConfig(api_key="none", model="eirkit", small_model="eirkit", base_url=self.endpoint)
        embedding = OpenAIEmbedderConfig(
            api_key="none", base_url=self.endpoint, embedding_model="eirkit", embedding_dim=self.dimensions
        )
        return Graph(
            graph_driver=driver,
            llm_client=OpenAIGenericClient(model),
            embedder=OpenAIEmbedder(embedding),
            cross_encoder=OpenAIRerankerClient(
                model
            ),  # not used, but without it Graphiti requires a key from the environment
        )

    async def write(self, item: Item) -> None:
        from graphiti_core.nodes import EpisodeType

        self._written += 1
        if self.profile == STORE_ONLY:
            await self.forget(item.label)
            self._saved[item.label] = await self._save(item)
            return
        made = await self._graph.add_episode(
            name=item.label,
            episode_body=item.text,
            source_description="a record",
            reference_time=FIRST + timedelta(minutes=self._written),
            source=EpisodeType.text,
            group_id=self._group,
        )
        self._episodes.setdefault(item.label, []).append(made.episode.uuid)

    async def _save(self, item: Item) -> Any:
        """Return the fact of a record, saved between two nodes, its label and its text."""
        from graphiti_core.edges import EntityEdge
        from graphiti_core.nodes import EntityNode

        at, group = FIRST + timedelta(minutes=self._written), self._group
        nodes = [
            EntityNode(name=name, group_id=group, labels=["Entity"], created_at=at) for name in (item.label, "record")
        ]
        for node in nodes:
            await node.generate_name_embedding(self._graph.embedder)
            await node.save(self._graph.driver)
        source, target = (node.uuid for node in nodes)
        ends = {"source_node_uuid": source, "target_node_uuid": target}
        edge = EntityEdge(name="HOLDS", fact=item.text, group_id=group, created_at=at, valid_at=at, **ends)
        await edge.generate_embedding(self._graph.embedder)
        await edge.save(self._graph.driver)
        return edge

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        if self.profile == STORE_ONLY:
            await super().observe(messages, session, at)
            return
        from graphiti_core.nodes import EpisodeType

        await self._graph.add_episode(
            name=session,
            episode_body="\n".join(f"{message.role}: {message.content}" for message in messages),
            source_description="a conversation",
            reference_time=datetime.fromisoformat(at).replace(tzinfo=UTC),
            source=EpisodeType.message,
            group_id=self._group,
        )

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        if self.profile == STORE_ONLY:
            return await self.search(question, limit)
        return [_dated(edge) for edge in await self._found(question, limit)]

    async def contents(self) -> Sequence[str]:
        """Return the facts, then the episodes, which Graphiti keeps word for word."""
        if self.profile == STORE_ONLY:
            return [edge.fact for edge in await self._facts()]
        from graphiti_core.nodes import EpisodicNode

        query = "MATCH (e:Episodic {group_id: $group_id}) RETURN e.uuid AS uuid"
        rows, _, _ = await self._graph.driver.execute_query(query, group_id=self._group)
        episodes = await EpisodicNode.get_by_uuids(self._graph.driver, [row["uuid"] for row in rows])
        said = [_SPEAKER.sub(f"[{episode.valid_at:%Y-%m-%d}] ", episode.content) for episode in episodes]
        return [*map(_dated, await self._facts()), *said]

    async def search(self, query: str, limit: int) -> Sequence[str]:
        edges = await self._found(query, limit)
        if self.returns == "facts" or self.profile == STORE_ONLY:
            return [edge.fact if edge.invalid_at is None else EndedText(edge.fact) for edge in edges]
        return list(dict.fromkeys(await self._texts([edge.episodes[-1] for edge in edges if edge.episodes])))

    async def _found(self, query: str, limit: int) -> list[Any]:
        """Return the facts that Graphiti.search returns, which has no parameter for the minimum similarity."""
        from graphiti_core.search.search_config_recipes import EDGE_HYBRID_SEARCH_RRF

        config = EDGE_HYBRID_SEARCH_RRF.model_copy(deep=True)
        config.limit = limit
        if self.min_score is not None:
            config.edge_config.sim_min_score = self.min_score
        found = await self._graph.search_(query, config=config, group_ids=[self._group])
        return list(found.edges)

    async def read(self, label: str) -> str | None:
        """Return a label's last episode and the facts extracted from it that are still valid."""
        if self.profile == STORE_ONLY:
            saved = self._saved.get(label)
            held = [edge.fact for edge in await self._facts() if saved is not None and edge.uuid == saved.uuid]
            return held[0] if held else None
        if label not in self._episodes:
            return None
        last = self._episodes[label][-1]
        facts = [edge.fact for edge in await self._facts() if last in edge.episodes and edge.expired_at is None]
        return "\n".join(dict.fromkeys([*facts, *await self._texts([last])])) or None

    async def forget(self, label: str) -> None:
        for uuid in self._episodes.pop(label, ()):
            await self._graph.remove_episode(uuid)
        if (saved := self._saved.pop(label, None)) is not None:
            from graphiti_core.nodes import Node

            await saved.delete(self._graph.driver)
            await Node.delete_by_uuids(self._graph.driver, [saved.source_node_uuid, saved.target_node_uuid])

    async def usage(self) -> MemoryUsage:
        size = None
        if self.url is None:
            size = sum(path.stat().st_size for path in self._path().parent.glob(f"{self._group}*") if path.is_file())
        records = len(await self._facts()) if self.profile == STORE_ONLY else await self._count()
        return MemoryUsage(records=records, bytes=size, warnings=self._warnings.heard)

    async def _facts(self) -> list[Any]:
        from graphiti_core.edges import EntityEdge
        from graphiti_core.errors import GroupsEdgesNotFoundError

        try:
            return list(await EntityEdge.get_by_group_ids(self._graph.driver, [self._group]))
        except GroupsEdgesNotFoundError:
            return []

    async def _count(self) -> int:
        query = "MATCH (e:Episodic {group_id: $group_id}) RETURN count(*) AS episodes"
        rows, _, _ = await self._graph.driver.execute_query(query, group_id=self._group)
        return int(rows[0]["episodes"])

    async def _texts(self, uuids: Sequence[str]) -> list[str]:
        from graphiti_core.nodes import EpisodicNode

        found = {one.uuid: one.content for one in await EpisodicNode.get_by_uuids(self._graph.driver, list(uuids))}
        return [found[uuid] for uuid in uuids if uuid in found]

    async def teardown(self) -> None:
        await self._close()
        self._directory.remove()

    async def _close(self) -> None:
        """Delete the scope."""
        graph, self._graph = self._graph, None
        if graph is None:
            return
        if self.url is None:
            # An explicit close of Kuzu's database crashed now and then; its documentation leaves it to the collector.
            del graph
            gc.collect()
            self._path().unlink(missing_ok=True)
        else:
            from graphiti_core.nodes import Node

            await Node.delete_by_group_id(graph.driver, self._group)
            await graph.close()


def _dated(edge: Any) -> str:
    """Return a fact with the days on which it began and ended, as far as Graphiti knows them."""
    fact = edge.fact if edge.valid_at is None else f"[{edge.valid_at:%Y-%m-%d}] {edge.fact}"
    return fact if edge.invalid_at is None else EndedText(fact, f"{edge.invalid_at:%Y-%m-%d}")


async def _connect(url: str, group: str) -> Any:
    """Return the driver of a graph server; not tested against a real server."""
    parts = urlsplit(url)
    user, password = os.environ.get(USER), os.environ.get(PASSWORD)
    if parts.scheme in NEO4J:
        from graphiti_core.driver.neo4j_driver import Neo4jDriver

        driver: Any = Neo4jDriver(url, user, password)
    else:
        try:
            from graphiti_core.driver.falkordb_driver import FalkorDriver
        except ImportError as error:
            raise StoreError(
                "the FalkorDB driver is not installed; run pip install falkordb in the environment of graphiti"
            ) from error
        driver = FalkorDriver(parts.hostname or "", parts.port or FALKORDB_PORT, user, password, database=group)
    await driver.build_indices_and_constraints()
    return driver

// Chart of a small graph in layers, each node below what it needs: layout by dagre, drawn by Plot.
import { Graph, layout } from "@dagrejs/dagre";
import * as Plot from "@observablehq/plot";
import { draw } from "./picture";

export interface Node {
  id: number;
  color: string;
  ring?: boolean;
}

const MOST = 60; // nodes; beyond it a drawing says less than a number

interface Spot {
  id: number;
  x: number;
  y: number;
  color: string;
  ring: boolean;
}

export function layerPicture(nodes: Node[], edges: [number, number][], width: number): Element {
  if (nodes.length > MOST) {
    const words = document.createElement("p");
    words.className = "quiet";
    words.textContent = `${nodes.length} steps, too many to draw`;
    return words;
  }
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 10, ranksep: 26, marginx: 4, marginy: 4 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(String(node.id), { width: 30, height: 22 });
  for (const [from, to] of edges) graph.setEdge(String(from), String(to));
  layout(graph);
  const spots = new Map<number, Spot>();
  for (const node of nodes) {
    const { x = 0, y = 0 } = graph.node(String(node.id)) as { x?: number; y?: number };
    spots.set(node.id, { id: node.id, x, y, color: node.color, ring: node.ring ?? false });
  }
  return drawSpots([...spots.values()], edges, spots, graph.graph() as { width?: number; height?: number }, width);
}

function drawSpots(all: Spot[], edges: [number, number][], spots: Map<number, Spot>, size: { width?: number; height?: number }, room: number): Element {
  const [width, height] = [Math.max(40, size.width ?? 40), Math.max(30, size.height ?? 30)];
  const lines = edges.flatMap(([from, to]) => {
    const [a, b] = [spots.get(from), spots.get(to)];
    return a && b ? [{ x1: a.x, y1: a.y, x2: b.x, y2: b.y }] : [];
  });
  return draw({
    width: Math.min(room, width),
    height: height * Math.min(1, room / width),
    margin: 0,
    axis: null,
    x: { domain: [0, width], range: [0, Math.min(room, width)] },
    y: { domain: [0, height], range: [0, height * Math.min(1, room / width)] },
    marks: [
      Plot.arrow(lines, { x1: "x1", y1: "y1", x2: "x2", y2: "y2", inset: 12, headLength: 6, stroke: "var(--quiet)" }),
      Plot.dot(all, { x: "x", y: "y", r: 11, fill: "color", stroke: (spot: Spot) => (spot.ring ? "var(--ink)" : "var(--paper)"), strokeWidth: 2 }),
      Plot.text(all, { x: "x", y: "y", text: (spot: Spot) => String(spot.id), fill: "var(--paper)", fontSize: 10, fontWeight: 600 }),
    ],
    color: { type: "identity" },
    r: { type: "identity" },
  });
}

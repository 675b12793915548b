// Clusters and flows as a graph, laid out by dagre: an arrow's width is throughput, its colour the state.
import dagre from "@dagrejs/dagre";
import { useMemo } from "react";
import { now } from "./api";
import { ms, short, time } from "./format";
import { pathOf, usePlace } from "./place";
import type { Summary } from "./types";

const NODE = { height: 36, letter: 8, least: 80 };
type Point = { x: number; y: number };

export function Graph({ flows }: { flows: Summary[] }) {
  const place = usePlace();
  const edges = flows.map(({ source, target, dag_id }) => `${source}\n${target}\n${dag_id}`).join("\n\n");
  // The layout is of the names alone: numbers that change move nothing.
  const laid = useMemo(() => layout(edges), [edges]);
  const most = Math.max(1, ...flows.map((flow) => flow.bytes_per_second ?? 0));
  return (
    <div className="am-wide" tabIndex={0} role="region" aria-label="Clusters and flows as a graph">
      <svg width={laid.width} height={laid.height} viewBox={`0 0 ${laid.width} ${laid.height}`} role="group" aria-label="Clusters and flows">
        {flows.map((flow) => {
          const edge = laid.edges.get(flow.dag_id);
          if (!edge) return null;
          const width = 1.5 + (6 * (flow.bytes_per_second ?? 0)) / most;
          const path = `flow/${pathOf(flow.dag_id)}`;
          return (
            <a key={flow.dag_id} className={`am-edge am-${flow.state}`} href={place.link(path)} aria-label={`${flow.flow}: ${label(flow).join(" ")}`} onClick={(event) => (event.preventDefault(), place.go(path))}>
              <path d={`M${edge.points.map(({ x, y }) => `${x} ${y}`).join("L")}`} fill="none" stroke="currentColor" strokeWidth={width}>
                <title>{`${flow.flow}; width: ${short(flow.bytes_per_second)} bytes a second`}</title>
              </path>
              <path d={head(edge.points, width)} fill="currentColor" />
              <text x={edge.at.x} y={edge.at.y - 19 - width / 2} textAnchor="middle">
                {label(flow).map((line, number) => (
                  <tspan key={line} x={edge.at.x} dy={number ? 13 : 0}>
                    {`${line} `}
                  </tspan>
                ))}
              </text>
            </a>
          );
        })}
        {laid.nodes.map((node) => (
          <g key={node.name} className="am-node">
            <rect x={node.x - node.width / 2} y={node.y - NODE.height / 2} width={node.width} height={NODE.height} rx={6} />
            <text x={node.x} y={node.y + 5} textAnchor="middle">
              {node.name}
            </text>
          </g>
        ))}
      </svg>
    </div>
  );
}

/** The head of an arrow at the end of its line. */
function head(points: Point[], width: number): string {
  const [from, to] = points.slice(-2);
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const [x, y] = [(to.x - from.x) / length, (to.y - from.y) / length];
  const [long, wide] = [9 + width, 4 + width];
  const at = { x: to.x - x * long, y: to.y - y * long };
  return `M${to.x} ${to.y}L${at.x - y * wide} ${at.y + x * wide}L${at.x + y * wide} ${at.y - x * wide}z`;
}

function label(flow: Summary): string[] {
  if (flow.state === "new") return ["no window yet"];
  const lag = flow.lag_records ? `lag ${flow.oldest_ms === null ? "not known" : ms(now() - flow.oldest_ms)}` : "no lag";
  return [lag, flow.verified_ms === null ? "never verified" : `verified to ${time(flow.verified_ms)}`];
}

function layout(edges: string) {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 40, ranksep: 170, marginx: 8, marginy: 24 });
  const flows = edges ? edges.split("\n\n").map((edge) => edge.split("\n")) : [];
  for (const [source, target] of flows) {
    for (const name of [source, target]) graph.setNode(name, { width: Math.max(NODE.least, NODE.letter * name.length + 24), height: NODE.height });
  }
  for (const [source, target, id] of flows) graph.setEdge(source, target, { width: 130, height: 30, labelpos: "c" }, id);
  dagre.layout(graph);
  const found = new Map<string, { points: Point[]; at: Point }>();
  let [left, top, right, bottom] = [0, 0, 0, 0];
  const see = ({ x, y }: Point, w = 0, h = 0) => {
    [left, top] = [Math.min(left, x - w), Math.min(top, y - h)];
    [right, bottom] = [Math.max(right, x + w), Math.max(bottom, y + h)];
  };
  for (const each of graph.edges()) {
    const edge = graph.edge(each) as { points: Point[]; x: number; y: number };
    found.set(each.name!, { points: edge.points, at: { x: edge.x, y: edge.y } });
    edge.points.forEach((point) => see(point)); // of a ring they lie outside of the graph's own size
    see(edge, 70, 36);
  }
  const nodes = graph.nodes().map((name) => ({ name, ...(graph.node(name) as Point & { width: number }) }));
  nodes.forEach((node) => see(node, node.width / 2, NODE.height / 2));
  const move = ({ x, y }: Point): Point => ({ x: x - left + 4, y: y - top + 4 });
  for (const [id, { points, at }] of found) found.set(id, { points: points.map(move), at: move(at) });
  return { nodes: nodes.map((node) => ({ ...node, ...move(node) })), edges: found, width: right - left + 8, height: bottom - top + 8 };
}

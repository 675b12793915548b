// All partitions as a map on a canvas: a cell each, its colour the lag in seconds, or that it is held or fails.
import { useEffect, useRef, useState, type KeyboardEvent, type MouseEvent } from "react";
import { now } from "./api";
import { counted, ms, plain } from "./format";
import { pathOf, usePlace } from "./place";
import { useDark } from "./plot";
import type { Partitions } from "./types";

const STEPS = [1, 10, 60, 600, 3_600]; // seconds of lag, each with a colour of its own
const LEGEND = ["no lag", "≤ 1 s", "≤ 10 s", "≤ 1 min", "≤ 10 min", "≤ 1 h", "more", "not known", "held", "failing"];

export function Heat({ dagId, partitions }: { dagId: string; partitions: Partitions }) {
  const place = usePlace();
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [at, setAt] = useState<number>();
  const isDark = useDark();
  const length = partitions.partition.length;
  const cell = length > 4_000 ? 6 : length > 500 ? 9 : 14;
  const columns = Math.max(1, Math.floor(width / cell));
  const height = Math.ceil(length / columns) * cell;

  useEffect(() => {
    if (!box.current) return;
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);

  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || !canvas.current || !width) return;
    const scale = window.devicePixelRatio || 1;
    canvas.current.width = width * scale;
    canvas.current.height = height * scale;
    context.scale(scale, scale);
    const style = getComputedStyle(canvas.current);
    const colors = LEGEND.map((_, number) => style.getPropertyValue(`--am-heat-${number}`).trim());
    const time = now();
    for (let number = 0; number < length; number++) {
      context.fillStyle = colors[levelOf(partitions, number, time)];
      context.fillRect((number % columns) * cell, Math.floor(number / columns) * cell, cell - 1, cell - 1);
    }
    if (at !== undefined && at < length) {
      context.strokeStyle = style.color;
      context.lineWidth = 2;
      context.strokeRect((at % columns) * cell, Math.floor(at / columns) * cell, cell - 1, cell - 1);
    }
  }, [partitions, width, height, columns, cell, length, at, isDark]);

  const open = (number: number | undefined) => {
    if (number === undefined || number >= length) return;
    place.go(`partition/${pathOf(dagId)}`, { topic: partitions.topics[partitions.topic[number]], partition: String(partitions.partition[number]) });
  };
  const under = (event: MouseEvent<HTMLCanvasElement>): number | undefined => {
    const { left, top } = event.currentTarget.getBoundingClientRect();
    const number = Math.floor((event.clientY - top) / cell) * columns + Math.floor((event.clientX - left) / cell);
    return number < length && event.clientX - left < columns * cell ? number : undefined;
  };
  const step = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    if (event.key === "Enter") open(at);
    else if (by === undefined) return;
    else setAt((before) => Math.min(length - 1, Math.max(0, before === undefined ? 0 : before + by)));
    event.preventDefault();
  };
  const worst = partitions.lag.filter((lag) => lag > 0).length;
  return (
    <figure className="am-heat" role="group" aria-label={`Map of ${counted(length, "partition")}, ${counted(worst, "partition")} with a lag`}>
      <figcaption title="A cell a partition, in the order of topics and numbers: how old the newest record copied is, where the last window left a lag.">Partitions</figcaption>
      <div ref={box}>
        <canvas ref={canvas} className="am-canvas" height={height} tabIndex={0} role="img" aria-label={at === undefined ? "Arrow keys choose a partition, Enter opens it" : said(partitions, at)} onMouseMove={(event) => setAt(under(event))} onMouseLeave={() => setAt(undefined)} onClick={(event) => open(under(event))} onKeyDown={step} />
      </div>
      <p className="am-near" aria-live="polite">
        {at === undefined || at >= length ? "" : said(partitions, at)}
      </p>
      <ul className="am-legend">
        {LEGEND.map((name, number) => (
          <li key={name}>
            <span className={`am-swatch am-heat-${number}`} /> {name}
          </li>
        ))}
      </ul>
    </figure>
  );
}

function levelOf(partitions: Partitions, number: number, time: number): number {
  const state = partitions.state[number];
  if (state) return state === "held" ? 8 : 9;
  if (!partitions.lag[number]) return 0;
  const newest = partitions.newest_ms[number];
  if (newest < 0) return 7;
  const found = STEPS.findIndex((step) => time - newest <= step * 1000);
  return found < 0 ? 6 : found + 1;
}

export const lagSeconds = (partitions: Partitions, number: number): number => (!partitions.lag[number] ? 0 : partitions.newest_ms[number] < 0 ? Infinity : (now() - partitions.newest_ms[number]) / 1000);

function said(partitions: Partitions, number: number): string {
  if (number >= partitions.partition.length) return "";
  const lag = partitions.lag[number];
  const age = partitions.newest_ms[number] < 0 ? "nothing copied yet" : `newest record copied is ${ms(now() - partitions.newest_ms[number])} old`;
  const state = partitions.state[number] ? `, ${partitions.state[number]}` : "";
  const unverified = partitions.unverified[number] ? `, ${counted(partitions.unverified[number], "offset")} not verified` : "";
  return `${plain(partitions.topics[partitions.topic[number]])}-${partitions.partition[number]}: ${lag ? `lag ${counted(lag, "record")}, ${age}` : "no lag"}${unverified}${state}`;
}

// Numbers over time, by uPlot: zoom by dragging, all plots of a page with one cursor, lines for windows, holds and decisions.
import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import { time, utc } from "./format";
import type { Maybe } from "./types";

export interface Line {
  name: string;
  values: Maybe<number>[];
}
export interface Mark {
  time_ms: number;
  kind: "window" | "hold" | "decision";
  text: string;
}
interface Props {
  name: string;
  how: string;
  times: number[]; // epoch seconds
  lines: Line[];
  unit: (value: Maybe<number>) => string;
  marks: Mark[];
  zoom: (sinceMs: number, untilMs: number) => void;
}
const HEIGHT = 170;
const NEAR = 5; // pixels

export function Plot({ name, how, times, lines, unit, marks, zoom }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const told = useRef<HTMLParagraphElement>(null);
  const marked = useRef(marks);
  marked.current = marks;
  const zoomed = useRef(zoom);
  zoomed.current = zoom;
  const plot = useRef<uPlot>(undefined);
  const names = lines.map((line) => line.name).join("\n");
  const isDark = useDark();

  useEffect(() => {
    const box = place.current;
    if (!box) return;
    const color = (name: string) => resolved(box, name);
    const axis = { stroke: getComputedStyle(box).color, grid: { stroke: color("--am-line"), width: 1 }, ticks: { stroke: color("--am-line"), width: 1 } };
    const drawn = new uPlot(
      {
        width: box.clientWidth || 600,
        height: HEIGHT,
        cursor: { sync: { key: "airmirror" }, drag: { x: true, y: false, setScale: false } },
        series: [
          { label: "time", value: (_, value) => (value === null ? "" : time(value * 1000)) },
          ...names.split("\n").map((label, number) => ({
            label,
            stroke: color(`--am-plot-${number + 1}`),
            width: 1.5,
            spanGaps: true, // a gate's samples know no lags
            points: { size: 4 },
            value: (_: uPlot, value: Maybe<number>) => (value === null || value === undefined ? "" : unit(value)),
          })),
        ],
        axes: [{ ...axis, values: (_, splits) => splits.map((value, number) => axisTime(value, splits[number - 1])) }, { ...axis, size: 70, values: (_, splits) => splits.map((value) => unit(value)) }],
        scales: { y: { range: (_, least, most) => [Math.min(0, least ?? 0), Math.max(most ?? 1, 1e-9) * 1.05] } },
        hooks: {
          draw: [(self) => draw(self, marked.current, color)],
          setCursor: [(self) => (told.current!.textContent = near(self, marked.current))],
          setSelect: [
            (self) => {
              if (self.select.width > NEAR) zoomed.current(Math.round(self.posToVal(self.select.left, "x") * 1000), Math.round(self.posToVal(self.select.left + self.select.width, "x") * 1000));
              self.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            },
          ],
        },
      },
      [[], ...names.split("\n").map(() => [])],
      box,
    );
    plot.current = drawn;
    const watch = new ResizeObserver(() => drawn.setSize({ width: Math.max(120, box.clientWidth), height: HEIGHT }));
    watch.observe(box);
    return () => {
      watch.disconnect();
      drawn.destroy();
      plot.current = undefined;
    };
    // The unit's function is as fixed as the lines' names.
  }, [names, isDark]);

  useEffect(() => {
    plot.current?.setData([times, ...lines.map((line) => line.values)] as uPlot.AlignedData);
  }, [times, lines, marks, isDark]);

  const last = lines.map((line) => `${line.name} ${unit(line.values.findLast((value) => value !== null) ?? null)}`).join(", ");
  return (
    <figure className="am-plot" role="group" aria-label={`${name}: ${times.length} points; last ${last}`}>
      <figcaption title={how}>{name}</figcaption>
      <div ref={place} />
      <p ref={told} className="am-near" aria-hidden="true" />
    </figure>
  );
}

/** A colour of the style sheet as a canvas takes it, which knows no light-dark(). */
function resolved(box: HTMLElement, name: string): string {
  const probe = box.appendChild(document.createElement("span"));
  probe.style.color = `var(${name})`;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** 14:02, with seconds where they count, and the date where another day begins. */
function axisTime(value: number, before: number | undefined): string {
  const [at, last] = [new Date(value * 1000), before === undefined ? undefined : new Date(before * 1000)];
  const clock = time(value * 1000, at);
  const short = value % 60 ? clock : clock.slice(0, 5);
  return !last || last.toDateString() === at.toDateString() ? short : `${short}\n${at.getMonth() + 1}/${at.getDate()}`;
}

function draw(self: uPlot, marks: Mark[], color: (name: string) => string): void {
  const { ctx, bbox } = self;
  ctx.save();
  for (const mark of marks) {
    const x = self.valToPos(mark.time_ms / 1000, "x", true);
    if (!(x >= bbox.left && x <= bbox.left + bbox.width)) continue;
    ctx.strokeStyle = color(`--am-mark-${mark.kind}`);
    ctx.lineWidth = mark.kind === "window" ? 1 : 2;
    ctx.setLineDash(mark.kind === "window" ? [2, 4] : []);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

function near(self: uPlot, marks: Mark[]): string {
  const left = self.cursor.left ?? -1;
  if (left < 0) return "";
  const found = marks.filter((mark) => Math.abs(self.valToPos(mark.time_ms / 1000, "x") - left) < NEAR).slice(0, 3);
  return found.map((mark) => `${time(mark.time_ms)} (${utc(mark.time_ms)}) ${mark.text}`).join(" · ");
}

/** Whether Airflow is dark: a canvas is drawn again when that changes. */
export function useDark(): boolean {
  const dark = useRef(document.documentElement.classList.contains("dark"));
  const [, again] = useState(0);
  useEffect(() => {
    const watch = new MutationObserver(() => {
      const is = document.documentElement.classList.contains("dark");
      if (is !== dark.current) {
        dark.current = is;
        again((count) => count + 1);
      }
    });
    watch.observe(document.documentElement, { attributes: true, attributeFilter: ["class"] });
    return () => watch.disconnect();
  }, []);
  return dark.current;
}

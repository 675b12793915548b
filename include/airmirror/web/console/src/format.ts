// Numbers and times for people: units always, the viewer's time zone with UTC as a tooltip.

const NUMBER = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (value: number | null | undefined): string => (value === null || value === undefined ? "not known" : NUMBER.format(value));
export const short = (value: number | null | undefined): string => (value === null || value === undefined ? "not known" : SHORT.format(value));
export const counted = (value: number, what: string): string => `${NUMBER.format(value)} ${what}${value === 1 ? "" : "s"}`;

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "not known";
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let at = 0;
  for (; value >= 1000 && at < units.length - 1; at++) value /= 1000;
  return `${at && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "not known";
  const sign = value < 0 ? "−" : "";
  value = Math.abs(value);
  if (value < 1) return `${sign}${Math.round(value * 1000)} ms`;
  if (value < 10) return `${sign}${value.toFixed(1)} s`;
  if (value < 120) return `${sign}${Math.round(value)} s`;
  if (value < 7_200) return `${sign}${Math.round(value / 60)} min`;
  if (value < 172_800) return `${sign}${(value / 3_600).toFixed(1)} h`;
  return `${sign}${Math.round(value / 86_400)} days`;
}

export const ms = (value: number | null | undefined): string => (value === null || value === undefined ? "not known" : seconds(value / 1000));

const two = (value: number) => String(value).padStart(2, "0");

/** A time of today as 14:02:07, another one with its date. */
export function time(epochMs: number, today = new Date()): string {
  const at = new Date(epochMs);
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return at.toDateString() === today.toDateString() ? clock : `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock}`;
}

export const utc = (epochMs: number): string => `${new Date(epochMs).toISOString().replace("T", " ").slice(0, 19)} UTC`;

/** A text of a log or a broker on one line, its control characters and directions made visible. */
export const plain = (text: string): string =>
  text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);

// Asks for numbers: one request a page, every five seconds, conditional. What was answered last is kept in the module, so that
// a page that Airflow mounts again shows at once what it had.
import { useEffect, useState } from "react";

export const EVERY_MS = 5_000;
export const AIRFLOW = "api/v2/"; // how the paths of Airflow's own API begin
export const OLD_MS = 20_000; // without an answer so long, numbers are called old

export interface Problem {
  kind: "login" | "forbidden" | "missing" | "busy" | "new" | "ledger" | "unreachable";
  text: string;
}
export interface Answer<T> {
  data?: T;
  at?: number; // when the server answered last, by our clock
  problem?: Problem;
}
interface Kept {
  data: unknown;
  tag: string | null;
  at: number;
}
const kept = new Map<string, Kept>();
let skewMs = 0; // the server's clock less ours, to within a second

export const now = (): number => Date.now() + skewMs;
export const href = (path: string): string => new URL(path, document.baseURI).href;

/** A route's address: of Airflow's own API, or of ours. */
const address = (path: string): string => href(path.startsWith(AIRFLOW) ? path : `airmirror/console/api/${path}`);

async function ask<T>(path: string, signal: AbortSignal): Promise<Answer<T>> {
  const before = kept.get(path);
  const headers: Record<string, string> = { accept: "application/json" };
  if (before?.tag) headers["if-none-match"] = before.tag;
  let answer: Response;
  try {
    answer = await fetch(address(path), { credentials: "same-origin", headers, signal, cache: "no-store" });
  } catch (error) {
    if (signal.aborted) throw error;
    return { ...old<T>(before), problem: { kind: "unreachable", text: "Airflow's API server does not answer." } };
  }
  const date = Date.parse(answer.headers.get("date") ?? "");
  if (Number.isFinite(date) && Math.abs(date - Date.now()) > 2_000) skewMs = date - Date.now();
  if (answer.status === 304 && before) {
    before.at = Date.now();
    return old<T>(before);
  }
  if (!answer.ok) {
    return { ...old<T>(before), problem: await problemOf(answer) };
  }
  const data = (await answer.json()) as T;
  if (kept.size > 50) kept.clear();
  kept.set(path, { data, tag: answer.headers.get("etag"), at: Date.now() });
  return { data, at: Date.now() };
}

async function problemOf(answer: Response): Promise<Problem> {
  const kind = ({ 401: "login", 403: "forbidden", 404: "missing", 429: "busy", 503: "ledger" } as const)[answer.status as 401] ?? "unreachable";
  const isNew = answer.headers.get("x-airmirror") === "no ledger";
  return { kind: isNew ? "new" : kind, text: await said(answer) };
}

/** Ask Airflow's own API to change something: it checks who may, and writes down who did. */
export async function send<T>(method: "PATCH" | "POST", path: string, body: unknown): Promise<Answer<T>> {
  try {
    const headers = { accept: "application/json", "content-type": "application/json" };
    const answer = await fetch(address(path), { method, credentials: "same-origin", headers, body: JSON.stringify(body) });
    return answer.ok ? { data: (await answer.json()) as T, at: Date.now() } : { problem: await problemOf(answer) };
  } catch {
    return { problem: { kind: "unreachable", text: "Airflow's API server does not answer." } };
  }
}

async function said(answer: Response): Promise<string> {
  try {
    const detail = ((await answer.json()) as { detail?: unknown }).detail;
    if (typeof detail === "string") return detail;
  } catch {
    // not JSON: a proxy's page
  }
  return `Airflow answered ${answer.status}.`;
}

function old<T>(before?: Kept): Answer<T> {
  return before ? { data: before.data as T, at: before.at } : {};
}

/** The answer of a route now, asked for again while the page is open and visible, unless it is wanted `once`. */
export function useAnswer<T>(path: string | undefined, once = false): Answer<T> {
  const [state, setState] = useState<{ path?: string; answer: Answer<T> }>({ answer: {} });
  useEffect(() => {
    if (path === undefined) return;
    const stop = new AbortController();
    let timer = 0;
    let asking = false;
    const load = async () => {
      if (asking) return; // one chain of requests, however often the page is looked at again
      window.clearTimeout(timer);
      asking = true;
      try {
        if (document.visibilityState !== "hidden") {
          const answer = await ask<T>(path, stop.signal);
          if (!stop.signal.aborted) setState((before) => (same(before, path, answer) ? before : { path, answer }));
        }
      } catch {
        return; // the page was left
      } finally {
        asking = false;
      }
      if (!stop.signal.aborted && !once) timer = window.setTimeout(load, EVERY_MS);
    };
    const seen = () => void (document.visibilityState === "visible" && load());
    if (!once) document.addEventListener("visibilitychange", seen);
    void load();
    return () => {
      stop.abort();
      window.clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [path, once]);
  if (path === undefined) return {};
  return state.path === path ? state.answer : old<T>(kept.get(path));
}

function same<T>(before: { path?: string; answer: Answer<T> }, path: string, answer: Answer<T>): boolean {
  // Nothing but the time of the answer: the clock on the page asks for that itself.
  return before.path === path && before.answer.data === answer.data && !before.answer.problem && !answer.problem && answer.data !== undefined;
}

/** When a route was answered last, by our clock. */
export const answeredAt = (path: string): number | undefined => kept.get(path)?.at;

// What all pages are made of: numbers with their explanation, times, states, problems, tables.
import { useEffect, useState, type ReactNode } from "react";
import { answeredAt, EVERY_MS, href, now, OLD_MS, type Answer } from "./api";
import { ms, plain, time, utc } from "./format";
import { pathOf, usePlace } from "./place";
import type { Decided, Maybe, Summary } from "./types";

/** Renders again every so often: ages grow though no number changes. */
export function useTick(everyMs = EVERY_MS): void {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = window.setInterval(() => tick((count) => count + 1), everyMs);
    return () => window.clearInterval(timer);
  }, [everyMs]);
}

export function Time({ at, age = false }: { at: Maybe<number> | undefined; age?: boolean }) {
  if (at === null || at === undefined || at < 0) return <span className="am-muted">never</span>;
  if (!(at <= 8.64e15)) return <>{at}</>; // no calendar has it
  return (
    <time dateTime={new Date(at).toISOString()} title={utc(at)}>
      {age ? `${ms(Math.max(0, now() - at))} ago` : time(at)}
    </time>
  );
}

/** A number, and how it is measured. */
export function Fact({ name, how, children }: { name: string; how: string; children: ReactNode }) {
  return (
    <div className="am-fact" title={how}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const STATES: Record<Summary["state"], [string, string]> = {
  verified: ["verified", "Everything that the last window found on the source is on the target, and its gate let it pass."],
  unverified: ["not verified yet", "Nothing was left to copy; the gate has not let all of it pass yet, or the window was not of all partitions."],
  behind: ["behind", "The last window left records on the source that are not on the target yet."],
  decided: ["decided", "What the last run stopped at is decided; the next run shows what became of it."],
  held: ["held", "The gate holds partitions until an operator decides; the others are copied."],
  failing: ["failing", "Windows fail and it does not get better by itself, or the last run failed before its window ended."],
  frozen: ["frozen", "A person has frozen the flow: no window writes to its remote topics until it is unfrozen."],
  new: ["no window yet", "The ledger knows nothing of this flow: no window has ended."],
};

export function State({ state }: { state: Summary["state"] }) {
  return (
    <span className={`am-state am-${state}`} title={STATES[state][1]}>
      {STATES[state][0]}
    </span>
  );
}

/** A text that is not ours, as it is. */
export const Text = ({ children, most = 300 }: { children: string; most?: number }) => (
  <span className="am-text" title={children.length > most ? plain(children).slice(0, 4_000) : undefined}>
    {plain(children.length > most ? `${children.slice(0, most)}…` : children)}
  </span>
);

/** What people have decided and no run has shown yet. */
export const DecidedList = ({ dagId, decided }: { dagId: string; decided: Decided[] }) => (
  <ul>
    {decided.map((each) => (
      <li key={`${each.topic}-${each.partition}`}>
        {each.topic ? <Link to={`partition/${pathOf(dagId)}`} query={{ topic: each.topic, partition: String(each.partition) }}>{plain(each.topic)}-{each.partition}</Link> : "The whole flow"}: {plain(each.action).replaceAll("_", " ")}, by {plain(each.by)}, <Time at={each.time_ms} />. <Text>{each.reason}</Text>
      </li>
    ))}
  </ul>
);

export function Command({ children }: { children: string }) {
  const [copied, setCopied] = useState(false);
  const copy = () => void navigator.clipboard?.writeText(children).then(() => setCopied(true), () => setCopied(false));
  return (
    <span className="am-command">
      <code tabIndex={0}>{children}</code>
      <button type="button" onClick={copy} aria-label={`Copy the command ${children.slice(0, 60)}`}>
        {copied ? "copied" : "copy"}
      </button>
    </span>
  );
}

export function Link({ to, query, children, ...more }: { to: string; query?: Record<string, string>; children: ReactNode; className?: string; current?: boolean }) {
  const place = usePlace();
  const { current, ...others } = more;
  return (
    <a
      {...others}
      aria-current={current ? "page" : undefined}
      href={place.link(to, query)}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
        event.preventDefault();
        place.go(to, query);
      }}
    >
      {children}
    </a>
  );
}

/** To a page of Airflow's, or the gate's. */
export const Outer = ({ to, children }: { to: string; children: ReactNode }) => <a {...usePlace().outer(to)}>{children}</a>;

/** What a page shows of its answer: loading, old, gone, not allowed. The page itself stays, with what was answered last. */
export function Answered<T>({ answer, path, once = false, children }: { answer: Answer<T>; path: string; once?: boolean; children: (data: T) => ReactNode }) {
  useTick();
  const { problem, data } = answer;
  const at = answeredAt(path);
  const isOld = !once && at !== undefined && Date.now() - at > OLD_MS;
  return (
    <>
      {problem && (
        <p role="alert" className="am-problem" data-kind={problem.kind}>
          {TOLD[problem.kind === "new" && data !== undefined ? "ledger" : problem.kind]} {problem.kind !== "login" && <Text>{problem.text}</Text>}{" "}
          {problem.kind === "login" && <LogIn />}
        </p>
      )}
      {data !== undefined && at !== undefined && (
        <p className={isOld || problem ? "am-old am-is-old" : "am-old"} role={isOld ? "status" : undefined}>
          {isOld || problem ? "These numbers are old: " : ""}asked <Time at={at} />
          {isOld ? `, ${ms(Date.now() - at)} ago` : ""}
        </p>
      )}
      {data === undefined ? !problem && <p role="status">Loading…</p> : children(data)}
    </>
  );
}

const TOLD = {
  login: "Your session has ended.",
  forbidden: "You may not see this: it needs the right to read runs of the flow's DAG.",
  missing: "Not found:",
  busy: "Not now:",
  new: "Nothing has run yet:",
  ledger: "The ledger can't be read.",
  unreachable: "No answer.",
};

export function LogIn() {
  const place = usePlace();
  const { href: here } = window.parent.location;
  return <a {...place.outer(`auth/login?next=${encodeURIComponent(here)}`)}>Log in again</a>;
}

export interface Column<Row> {
  key: string;
  name: string;
  how?: string;
  right?: boolean;
  by?: (row: Row) => number | string; // to sort by; none: it is not sorted by this
  cell: (row: Row) => ReactNode;
}

const FIRST = 100; // rows shown at once; the others on demand

/** Rows, sorted and filtered as the address says: `sort`, `-sort` and `find`. */
export function Table<Row>({ name, columns, rows, id, text, empty }: { name: string; columns: Column<Row>[]; rows: Row[]; id: (row: Row) => string; text?: (row: Row) => string; empty: ReactNode }) {
  const place = usePlace();
  const [most, setMost] = useState(FIRST);
  const find = text ? (place.query.get("find") ?? "").toLowerCase() : "";
  const sort = place.query.get("sort") ?? "";
  const column = columns.find((each) => each.by && each.key === sort.replace(/^-/, ""));
  const found = find && text ? rows.filter((row) => text(row).toLowerCase().includes(find)) : rows;
  const ordered = column ? [...found].sort((one, other) => compare(column.by!(one), column.by!(other)) * (sort.startsWith("-") ? -1 : 1)) : found;
  return (
    <>
      {text && rows.length > 0 && (
        <label className="am-find">
          Find <input type="search" value={place.query.get("find") ?? ""} onChange={(event) => place.set({ find: event.target.value || undefined })} />
        </label>
      )}
      <div className="am-wide" tabIndex={0} role="region" aria-label={name}>
        <table>
          <thead>
            <tr>
              {columns.map((each) => (
                <th key={each.key} scope="col" title={each.how} className={each.right ? "am-right" : undefined} aria-sort={column === each ? (sort.startsWith("-") ? "descending" : "ascending") : undefined}>
                  {each.by ? (
                    <button type="button" onClick={() => place.set({ sort: sort === `-${each.key}` ? each.key : `-${each.key}` })}>
                      {each.name}
                      <span aria-hidden="true">{column === each ? (sort.startsWith("-") ? " ↓" : " ↑") : ""}</span>
                    </button>
                  ) : (
                    each.name
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {ordered.slice(0, most).map((row) => (
              <tr key={id(row)}>
                {columns.map((each) => (
                  <td key={each.key} className={each.right ? "am-right" : undefined}>
                    {each.cell(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {ordered.length === 0 && <p className="am-empty">{rows.length ? `None of ${rows.length} has “${plain(find)}” in it.` : empty}</p>}
      {ordered.length > most && (
        <button type="button" onClick={() => setMost(most + 10 * FIRST)}>
          Show more: {ordered.length - most} are left
        </button>
      )}
    </>
  );
}

const compare = (one: number | string, other: number | string): number => (one < other ? -1 : one > other ? 1 : 0);

export { href };

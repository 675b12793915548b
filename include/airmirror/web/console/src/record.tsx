// The page of one record: on the source, and its copy on the target, side by side.
import { useState, type ReactNode } from "react";
import { useAnswer } from "./api";
import { bytes, count, counted, plain, utc } from "./format";
import { Answered, Link, Outer, Time } from "./parts";
import { pathOf, usePlace } from "./place";
import type { RecordAnswer, Shown, Single } from "./types";

const FORMS = ["json", "text", "hex"] as const;
type Form = (typeof FORMS)[number];

export function Compared({ dagId }: { dagId: string }) {
  const place = usePlace();
  const asked = new URLSearchParams({ topic: place.query.get("topic") ?? "", partition: place.query.get("partition") ?? "" });
  const offset = place.query.get("offset");
  const time = Date.parse(place.query.get("time") ?? "");
  if (offset && /^\d{1,19}$/.test(offset)) asked.set("offset", offset);
  else if (Number.isFinite(time)) asked.set("time_ms", String(Math.max(0, time)));
  const path = `flows/${pathOf(dagId)}/record?${asked}`;
  const answer = useAnswer<RecordAnswer>(path, true);
  return (
    <>
      <Choose key={asked.toString()} offset={offset ?? ""} time={place.query.get("time") ?? ""} />
      <Answered answer={answer} path={path} once>{(data) => <Both data={data} dagId={dagId} />}</Answered>
    </>
  );
}

function Choose({ offset, time }: { offset: string; time: string }) {
  const place = usePlace();
  const [at, setAt] = useState(offset);
  const [when, setWhen] = useState(time);
  return (
    <form
      className="am-nav"
      aria-label="Which record"
      onSubmit={(event) => {
        event.preventDefault();
        place.set(at ? { offset: at, time: undefined } : { offset: undefined, time: when || undefined });
      }}
    >
      <label>offset on the source <input inputMode="numeric" pattern="[0-9]*" value={at} onChange={(event) => setAt(event.target.value)} /></label>
      <label title="The first record that is not earlier, in your time zone.">or the first since <input type="datetime-local" step="1" value={when} onChange={(event) => { setWhen(event.target.value); setAt(""); }} /></label>
      <button type="submit">Compare</button>
    </form>
  );
}

function Both({ data, dagId }: { data: RecordAnswer; dagId: string }) {
  const place = usePlace();
  const form = FORMS.find((each) => each === place.query.get("as")) ?? "json";
  const { source, target, differences } = data;
  const differs = new Set(differences ?? []);
  const step = (by: number) => place.set({ offset: String((data.offset ?? 0) + by), time: undefined });
  return (
    <>
      <h3 className="am-h"><Link to={`partition/${pathOf(dagId)}`} query={{ topic: data.topic, partition: String(data.partition) }}>{plain(data.topic)}-{data.partition}</Link>{data.offset !== null && <>, offset {count(data.offset)}</>}{data.remote_topic && <> → {plain(data.remote_topic)}-{data.partition}, offset {count(data.target_offset)}</>}</h3>
      <p role="status" className={differs.size ? "am-problem" : undefined}>
        {differences ? (differs.size ? `They differ: ${differences.join(", ")}.` : "Both are equal: key, value, headers and timestamp.") : "There are no two records to compare."}
        {data.window && <> Copied by {data.window.includes("#") ? <Outer to={`dags/${encodeURIComponent(dagId)}/runs/${encodeURIComponent(data.window.split("#")[0])}`}>{plain(data.window.split("#")[0])}</Outer> : plain(data.window)}.</>}
      </p>
      <p>
        <button type="button" disabled={data.offset === null || data.offset <= (data.start ?? 0)} onClick={() => step(-1)}>one earlier</button>{" "}
        <button type="button" disabled={data.offset === null || data.offset + 1 >= (data.end ?? 0)} onClick={() => step(1)}>one later</button>{" "}
        {FORMS.map((each) => <button key={each} type="button" aria-pressed={form === each} onClick={() => place.set({ as: each })}>as {each}</button>)}
      </p>
      <div className="am-wide" tabIndex={0} role="region" aria-label="The record and its copy">
        <table className="am-record">
          <thead><tr><th scope="col">part</th><th scope="col">on the source</th><th scope="col">its copy on the target</th></tr></thead>
          <tbody>
            {(source.missing || target.missing) && <Row name="not shown" differs={false} left={source.missing ? plain(source.missing) : ""} right={target.missing ? plain(target.missing) : ""} />}
            <Row name="timestamp" differs={differs.has("timestamp")} left={<When record={source} />} right={<When record={target} />} />
            <Row name="key" differs={differs.has("key")} left={<Part part={source.key} form={form} />} right={<Part part={target.key} form={form} />} />
            <Row name="value" differs={differs.has("value")} left={<Part part={source.value} form={form} />} right={<Part part={target.value} form={form} />} />
            <Row name="headers" differs={differs.has("headers")} left={<Headers record={source} form={form} />} right={<Headers record={target} form={form} />} />
          </tbody>
        </table>
      </div>
      <p className="am-muted">Read from both clusters just now. Each look is in the log of Airflow's API server.</p>
    </>
  );
}

function Row({ name, differs, left, right }: { name: string; differs: boolean; left: ReactNode; right: ReactNode }) {
  return (
    <tr className={differs ? "am-differs" : undefined}>
      <th scope="row">{name}{differs && <span className="am-failing"> differs</span>}</th>
      <td>{left}</td>
      <td>{right}</td>
    </tr>
  );
}

const When = ({ record }: { record: Single }) =>
  record.timestamp === undefined ? null : record.timestamp < 0 || record.timestamp > 8.64e15 ? <>{record.timestamp}</> : <><Time at={record.timestamp} /> <span className="am-muted">({utc(record.timestamp)}, {record.timestamp})</span>{record.aborted && <span className="am-held"> of an aborted transaction</span>}</>;

function Part({ part, form }: { part?: Shown; form: Form }) {
  if (!part) return null;
  if (part.bytes === null) return <span className="am-muted">null</span>;
  if (part.hidden) return <span className="am-muted">{bytes(part.bytes)}, not shown: {part.hidden}</span>;
  const as = part[form] ?? part.text ?? part.json ?? part.hex ?? "";
  return (
    <>
      <pre className="am-bytes" tabIndex={0}>{lines(as)}</pre>
      <span className="am-muted">{bytes(part.bytes)}{part.cut ? ", only the beginning is shown" : ""}{form !== "hex" && part.text === undefined && part.json === undefined ? ", no text: as hex" : ""}</span>
    </>
  );
}

function Headers({ record, form }: { record: Single; form: Form }) {
  if (!record.headers) return null;
  if (!record.headers.length) return <span className="am-muted">none</span>;
  return (
    <>
      <dl>{record.headers.map((each, number) => <div key={number}><dt>{plain(each.name)}</dt><dd><Part part={each} form={form} /></dd></div>)}</dl>
      {record.headers_in_all! > record.headers.length && <p>The first {record.headers.length} of {counted(record.headers_in_all!, "header")}.</p>}
    </>
  );
}

const lines = (text: string): string => text.split("\n").map(plain).join("\n");

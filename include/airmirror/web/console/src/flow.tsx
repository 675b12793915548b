// A flow: its numbers over time, its windows with their gates, its partitions.
import { useMemo } from "react";
import { now, useAnswer } from "./api";
import { bytes, count, counted, ms, plain, seconds, short } from "./format";
import { Heat, lagSeconds } from "./heat";
import { HOW, Lag } from "./overview";
import { Answered, DecidedList, Fact, Link, Outer, State, Table, Text, Time, type Column } from "./parts";
import { pathOf, usePlace } from "./place";
import { Plot, type Mark } from "./plot";
import type { FlowAnswer, Maybe, WindowRow } from "./types";

const SPANS: [string, number][] = [["15 min", 900_000], ["1 h", 3_600_000], ["6 h", 21_600_000], ["24 h", 86_400_000], ["7 days", 604_800_000]];

export function Flow({ dagId }: { dagId: string }) {
  const place = usePlace();
  const asked = new URLSearchParams();
  for (const name of ["span", "since", "until"]) {
    const value = place.query.get(name);
    if (value && /^\d{1,15}$/.test(value)) asked.set(name, value);
  }
  const path = `flows/${pathOf(dagId)}${asked.size ? `?${asked}` : ""}`;
  const answer = useAnswer<FlowAnswer>(path);
  return <Answered answer={answer} path={path}>{(data) => <Shown data={data} />}</Answered>;
}

function Shown({ data }: { data: FlowAnswer }) {
  const { summary } = data;
  const dag = encodeURIComponent(summary.dag_id);
  return (
    <>
      <dl className="am-facts">
        <Fact name="state" how="The worst that is true of the flow."><State state={summary.state} /></Fact>
        <Fact name="lag" how={HOW.lag}><Lag row={summary} /></Fact>
        <Fact name="verified to" how={HOW.verified}><Time at={summary.verified_ms} /></Fact>
        <Fact name="recovery point" how={HOW.recovery}>{summary.verified_ms === null ? "not known" : ms(now() - summary.verified_ms)}</Fact>
        <Fact name="a gate last passed" how={HOW.passed}><Time at={summary.passed_ms} age /></Fact>
        <Fact name="throughput" how={HOW.rate}>{summary.records_per_second === null ? "not known" : `${short(summary.records_per_second)} records/s, ${bytes(summary.bytes_per_second)}/s`}</Fact>
        <Fact name="verified in all" how="Records, and bytes of their batches, that the gate has let pass since the ledger began to count.">{count(summary.records)} records, {bytes(summary.bytes)}</Fact>
        <Fact name="partitions" how="What the last window mirrored.">{count(summary.partitions)} in {counted(summary.topics, "topic")}</Fact>
        {data.latency.map((each) => (
          <Fact key={String(each.origin)} name={`end to end, from ${plain(String(each.origin))}`} how="Of the last window's heartbeats: from emission on the source until verified on the target, in the mean and at most.">
            {seconds(Number(each.latency_verified_mean))}, at most {seconds(Number(each.latency_verified_most))}
          </Fact>
        ))}
      </dl>
      <p>
        In Airflow: <Outer to={`dags/${dag}/runs`}>runs</Outer> · <Outer to={`dags/${dag}`}>DAG</Outer>
        {summary.stopped && <strong className="am-failing"> The last run failed before its window ended, for a reason that the ledger does not know: <Outer to={`dags/${encodeURIComponent(summary.dag_id)}/runs/${encodeURIComponent(summary.red_run)}`}>its log says it</Outer>. What follows is of the time before.</strong>}
        {summary.paused && <strong> The DAG is switched off: no window begins by itself.</strong>}
        {summary.follows_ms > 0 && <span className="am-muted"> Windows follow the log for {ms(summary.follows_ms)}; lags are measured when one ends, throughput while it runs.</span>}
      </p>
      {summary.decided.length > 0 && (
        <section>
          <h3 className="am-h">Decided</h3>
          <p>{summary.red_run ? <Outer to={`dags/${dag}/runs/${encodeURIComponent(summary.red_run)}`}>The last run</Outer> : "The last window"} failed. Since then it is decided, and waits for the next run, which shows what became of it:</p>
          <DecidedList dagId={summary.dag_id} decided={summary.decided} />
        </section>
      )}
      {summary.frozen.length > 0 && (
        <section>
          <h3 className="am-h">Frozen</h3>
          <ul>{summary.frozen.map((each) => <li key={each.topic}>{each.topic ? plain(each.topic) : "the whole flow"}: by {plain(each.by)}, <Time at={each.time_ms} />. <Text>{each.reason}</Text></li>)}</ul>
        </section>
      )}
      {data.failing.length > 0 && (
        <section>
          <h3 className="am-h">Failing</h3>
          <ul>{data.failing.map((each) => <li key={`${each.topic}-${each.partition}`}>{each.topic ? <Link to={`partition/${pathOf(data.dag_id)}`} query={{ topic: each.topic, partition: String(each.partition) }}>{plain(each.topic)}-{each.partition}</Link> : "whole windows"}: {counted(each.windows, "window")} since <Time at={each.since_ms} />. <Text most={4_000}>{each.error}</Text></li>)}</ul>
        </section>
      )}
      <Plots data={data} />
      <Where phases={data.phases} outcomes={data.outcomes} />
      <section>
        <h3 className="am-h">Partitions</h3>
        {data.partitions.partition.length ? <Heat dagId={data.dag_id} partitions={data.partitions} /> : <p className="am-empty">None yet: the first window that ends tells which there are.</p>}
        <Worst data={data} />
      </section>
      {data.reports.length > 0 && (
        <section>
          <h3 className="am-h" title="The last three of each kind that tasks have written; those of commands are where --write put them.">Reports</h3>
          <ul>{data.reports.map((each) => <li key={each.page}>{plain(each.kind)}: <Outer to={each.page}>{plain(each.name)}</Outer>, <Time at={each.time_ms} /></li>)}</ul>
        </section>
      )}
      <section>
        <h3 className="am-h">Windows</h3>
        <Table name="Windows" columns={windowColumns(summary.dag_id)} rows={data.windows} id={(row) => row.window} text={(row) => `${row.window} ${row.error}`} empty="No window has committed anything yet. Switch the DAG on, or trigger a run." />
      </section>
    </>
  );
}

function Plots({ data }: { data: FlowAnswer }) {
  const place = usePlace();
  const span = Number(place.query.get("span") ?? SPANS[2][1]);
  const zoomed = place.query.has("since");
  const { series } = data;
  const marks = useMemo<Mark[]>(
    () => [
      ...data.windows.map((each): Mark => ({ time_ms: each.ended_ms, kind: "window", text: `window ${plain(each.run ?? each.window)}: ${counted(each.copied, "record")}` })),
      ...data.holds.map((each): Mark => ({ time_ms: each.time_ms, kind: "hold", text: `${plain(each.topic)}-${each.partition} held by ${plain(each.by)}` })),
      ...data.decisions.map((each): Mark => ({ time_ms: each.time_ms, kind: "decision", text: `${plain(each.by)}: ${each.action.replace("_", " ")} ${plain(each.topic)}-${each.partition}` })),
    ],
    [data.windows, data.holds, data.decisions],
  );
  const plots: { name: string; how: string; unit: (value: Maybe<number>) => string; lines: [string, Maybe<number>[]][] }[] = [
    { name: "Lag", unit: seconds, how: "As each window left it: the age of the newest record copied in the partition that is furthest back.", lines: [["lag", series.lag_seconds]] },
    { name: "Lag in records", unit: short, how: "Source offsets up to the high watermark that each window left.", lines: [["records", series.lag_records]] },
    { name: "Throughput", unit: (value) => `${short(value)}/s`, how: "Records that the gate has let pass, a second, between two samples.", lines: [["records", series.records_per_second]] },
    { name: "Bytes", unit: (value) => `${bytes(value)}/s`, how: "Bytes of record batches that the gate has let pass, a second, between two samples.", lines: [["bytes", series.bytes_per_second]] },
    { name: "Latency to the commit", unit: seconds, how: "From a record's timestamp to its commit on the target: of the newest records of partitions in the mean, and of the oldest record at most.", lines: [["mean", series.latency], ["most", series.latency_most]] },
    { name: "Recovery point", unit: seconds, how: HOW.recovery, lines: [["recovery point", series.recovery]] },
  ];
  return (
    <section>
      <h3 className="am-h">Over time</h3>
      <div role="group" aria-label="Time shown" className="am-choice">
        {SPANS.map(([name, each]) => <button key={name} type="button" aria-pressed={!zoomed && span === each} onClick={() => place.set({ span: String(each), since: undefined, until: undefined })}>{name}</button>)}
        {zoomed && <button type="button" onClick={() => place.set({ since: undefined, until: undefined })}>back from {<Time at={Number(place.query.get("since"))} />} – {<Time at={Number(place.query.get("until"))} />}</button>}
      </div>
      {series.time.length === 0 ? (
        <p className="am-empty">Nothing was measured in this time. A sample is noted when a window ends and when a gate has judged; the ledger has them since it has had this table.</p>
      ) : (
        <>
          <div className="am-plots">
            {plots.map((each) => <Plot key={each.name} name={each.name} how={each.how} times={series.time} unit={each.unit} marks={marks} lines={each.lines.map(([name, values]) => ({ name, values }))} zoom={(since, until) => place.set({ since: String(since), until: String(until) })} />)}
          </div>
          <ul className="am-legend">
            <li><span className="am-swatch am-mark-window" /> a window's end</li>
            <li><span className="am-swatch am-mark-hold" /> a hold begins</li>
            <li><span className="am-swatch am-mark-decision" /> a person's decision</li>
            <li>drag over a plot to zoom</li>
          </ul>
        </>
      )}
    </section>
  );
}

function Where({ phases, outcomes }: { phases: Record<string, number>; outcomes: Record<string, number> }) {
  const ordered = Object.entries(phases).sort(([, one], [, other]) => other - one);
  const all = ordered.reduce((sum, [, each]) => sum + each, 0);
  if (!all) return null;
  return (
    <section>
      <h3 className="am-h" title="The sums of all windows since the ledger began to count; the ledger does not keep each window's own.">Where windows' time goes, all in all</h3>
      <ul className="am-bars">
        {ordered.map(([name, each]) => (
          <li key={name}>
            <span>{plain(name).replaceAll("_", " ")}</span>
            <meter min={0} max={all} value={each} aria-label={`${plain(name)}: ${seconds(each)}`} />
            <span>{seconds(each)}, {Math.round((100 * each) / all)} %</span>
          </li>
        ))}
      </ul>
      <p className="am-muted">Windows so far: {Object.entries(outcomes).map(([name, each]) => `${count(each)} ${plain(name)}`).join(", ")}.</p>
    </section>
  );
}

function Worst({ data }: { data: FlowAnswer }) {
  const { partitions } = data;
  const rows = partitions.partition.map((_, number) => number).filter((number) => partitions.lag[number] || partitions.state[number] || partitions.unverified[number]);
  const name = (number: number) => `${partitions.topics[partitions.topic[number]]}-${partitions.partition[number]}`;
  const columns: Column<number>[] = [
    { key: "partition", name: "partition", cell: (number) => <Link to={`partition/${pathOf(data.dag_id)}`} query={{ topic: partitions.topics[partitions.topic[number]], partition: String(partitions.partition[number]) }}>{plain(name(number))}</Link> },
    { key: "lag", name: "lag", right: true, how: HOW.lag, cell: (number) => (partitions.lag[number] ? `${seconds(lagSeconds(partitions, number))}, ${counted(partitions.lag[number], "record")}` : "none") },
    { key: "unverified", name: "not verified", right: true, how: "Source offsets that are replicated and that no gate has let pass yet.", cell: (number) => counted(partitions.unverified[number], "offset") },
    { key: "state", name: "state", cell: (number) => partitions.state[number] },
  ];
  const worst = rows.sort((one, other) => Number(partitions.state[other] !== "") - Number(partitions.state[one] !== "") || lagSeconds(partitions, other) - lagSeconds(partitions, one));
  if (!partitions.partition.length) return null;
  return <Table name="Partitions with something to tell" columns={columns} rows={worst} id={name} empty="No partition has a lag, is held, fails, or waits for its gate." />;
}

const windowColumns = (dagId: string): Column<WindowRow>[] => [
  { key: "ended", name: "ended", cell: (row) => <Time at={row.ended_ms} /> },
  { key: "window", name: "run", how: "The Airflow run that the window was of.", cell: (row) => (row.run ? <Outer to={`dags/${encodeURIComponent(dagId)}/runs/${encodeURIComponent(row.run)}`}>{plain(row.run)}</Outer> : <span title="A window of the command line.">{plain(row.window)}</span>) },
  { key: "gate", name: "gate", how: "Of how many of its partitions all that the window committed has passed a gate by now; and who has let the others pass.", cell: (row) => <Gate row={row} /> },
  { key: "copied", name: "copied", right: true, cell: (row) => counted(row.copied, "record") },
  { key: "bytes", name: "size", right: true, how: "Bytes of the record batches written.", cell: (row) => bytes(row.bytes) },
  { key: "took", name: "commits", right: true, how: "From its first commit to its last one.", cell: (row) => (row.first_ms === null ? "none" : row.ended_ms > row.first_ms ? `over ${ms(row.ended_ms - row.first_ms)}` : "one") },
  { key: "error", name: "", cell: (row) => (row.error ? <Text>{row.error}</Text> : row.failed ? `${counted(row.failed, "partition")} failed` : row.failed === null ? <span className="am-muted" title="The ledger keeps how the last fifty windows ended, and was made again since, or this one is older.">end not known</span> : "") },
];

function Gate({ row }: { row: WindowRow }) {
  const passed = Math.max(0, row.verified - row.let_pass.length);
  const told = row.partitions === 0 ? (row.failed ? "nothing was committed" : "nothing to judge") : passed === row.partitions ? `passed: all ${row.partitions}` : `passed: ${passed} of ${row.partitions}`;
  return (
    <span className={row.partitions && row.verified < row.partitions ? "am-held" : undefined}>
      {told}
      {row.let_pass.length > 0 && ` · let pass by ${[...new Set(row.let_pass)].map(plain).join(", ")}: ${row.let_pass.length}`}
      {row.page && <> · <Outer to={row.page}>Data Docs</Outer></>}
    </span>
  );
}

// All flows at a glance: a graph, a table, and Airflow's card.
import { now, useAnswer } from "./api";
import { bytes, count, counted, ms, plain, seconds, short } from "./format";
import { Answered, Link, Outer, State, Table, Time, type Column } from "./parts";
import { pathOf, usePlace } from "./place";
import { Graph } from "./graph";
import type { OverviewAnswer, Summary } from "./types";

export const HOW = {
  lag: "The age, now, of the newest record copied in the partition that is furthest back, where the last window left a lag. Records of it: source offsets up to the high watermark that the last window left.",
  verified: "Up to when all that the source had is on the target, compared: of the partition that is furthest back.",
  recovery: "Records of the source that are younger than this may be missing on the target: now less the time up to which all that the source had is verified there, as the failover plan and the metric airmirror_recovery_point_seconds of its partitions have it.",
  rate: "Records and bytes of record batches, verified, between the first and the last sample of the last ten minutes.",
  passed: "When a gate last let something of the flow pass.",
};

const COLUMNS: Column<Summary>[] = [
  { key: "flow", name: "flow", by: (row) => row.flow, cell: (row) => <Link to={`flow/${pathOf(row.dag_id)}`}>{row.flow}</Link> },
  { key: "state", name: "state", by: (row) => row.state, cell: (row) => <><State state={row.state} /><Why row={row} />{row.paused && <span className="am-state" title="The DAG is switched off in Airflow: no window begins by itself."> paused</span>}</> },
  { key: "lag", name: "lag", right: true, how: HOW.lag, by: (row) => (row.unknown ? Infinity : row.oldest_ms === null ? 0 : now() - row.oldest_ms), cell: (row) => <Lag row={row} /> },
  { key: "verified", name: "verified to", how: HOW.verified, by: (row) => row.verified_ms ?? 0, cell: (row) => <Time at={row.verified_ms} /> },
  { key: "recovery", name: "recovery point", right: true, how: HOW.recovery, by: (row) => (row.verified_ms === null ? Infinity : now() - row.verified_ms), cell: (row) => (row.verified_ms === null ? "not known" : ms(now() - row.verified_ms)) },
  { key: "rate", name: "throughput", right: true, how: HOW.rate, by: (row) => row.records_per_second ?? -1, cell: (row) => (row.records_per_second === null ? "not known" : `${short(row.records_per_second)} records/s, ${bytes(row.bytes_per_second)}/s`) },
  { key: "partitions", name: "partitions", right: true, by: (row) => row.partitions, cell: (row) => `${count(row.partitions)} in ${counted(row.topics, "topic")}` },
  { key: "held", name: "held", right: true, how: "Partitions that the gate or a person holds.", by: (row) => row.held, cell: (row) => (row.held ? <Link to="decisions">{row.held}</Link> : "0") },
];

/** Who has decided, and the run that failed. */
function Why({ row }: { row: Summary }) {
  const run = row.red_run && <Outer to={`dags/${encodeURIComponent(row.dag_id)}/runs/${encodeURIComponent(row.red_run)}`}>the last run</Outer>;
  if (row.state !== "decided") return run ? <> {run}</> : null;
  return <> by {plain(row.decided[0].by)}, <Time at={row.decided[0].time_ms} />{run && <>, after {run}</>}; waits for the next run</>;
}

export function Lag({ row }: { row: Summary }) {
  if (row.lag_records === null) return <>not known</>;
  if (!row.lag_records) return <>none</>;
  return <>{row.unknown ? "not known" : ms(now() - (row.oldest_ms ?? now()))}, {counted(row.lag_records, "record")}</>;
}

export function Overview() {
  const answer = useAnswer<OverviewAnswer>("overview");
  const place = usePlace();
  const view = place.query.get("view") ?? "both";
  return (
    <Answered answer={answer} path="overview">
      {({ flows, hidden, broken }) => (
        <>
          {broken > 0 && <p role="status" className="am-problem">Something is wrong with {counted(broken, "flow")} of the configuration: <code>airmirror config</code> says what.</p>}
          {flows.length === 0 ? (
            <p className="am-empty">{hidden ? `No flow that you may see: ${counted(hidden, "flow")} of the configuration need the right to read runs of their DAGs, or have none in Airflow yet.` : "The configuration has no enabled flow: write one into mirror.properties (source->target.enabled = true)."}</p>
          ) : (
            <>
              <div role="group" aria-label="View" className="am-choice">
                {["both", "graph", "table"].map((each) => <button key={each} type="button" aria-pressed={view === each} onClick={() => place.set({ view: each === "both" ? undefined : each })}>{each}</button>)}
              </div>
              {view !== "table" && <Graph flows={flows} />}
              {view !== "graph" && <Table name="Flows" columns={COLUMNS} rows={flows} id={(row) => row.dag_id} text={(row) => `${row.flow} ${row.state}`} empty="No flow." />}
              {flows.some((flow) => flow.state === "new") && <p className="am-empty">A flow without a window: switch its DAG <code>replicate.…</code> on, and its first run makes the numbers.</p>}
              {hidden > 0 && <p className="am-muted">{counted(hidden, "flow")} of the configuration not shown: you may not read them, or Airflow has no DAG of them yet.</p>}
            </>
          )}
        </>
      )}
    </Answered>
  );
}

/** The card on Airflow's home. It says less, and nothing where there is nothing to say. */
export function Card() {
  const { data, problem } = useAnswer<OverviewAnswer>("overview");
  if (!data || data.flows.length === 0) return problem && (problem.kind === "ledger" || problem.kind === "new") ? <p className="am-card">Airmirror: {problem.text}</p> : null;
  const flows = data.flows;
  const verified = flows.filter((flow) => flow.state === "verified");
  const to = Math.min(...verified.map((flow) => flow.verified_ms ?? Infinity));
  const held = flows.reduce((sum, flow) => sum + flow.held, 0);
  const failing = flows.filter((flow) => flow.state === "failing").length;
  const recovery = flows.some((flow) => flow.verified_ms === null) ? null : Math.max(...flows.map((flow) => now() - flow.verified_ms!)) / 1000;
  return (
    <p className="am-card">
      <Link to="">Airmirror</Link>: <Link to="">{verified.length} of {counted(flows.length, "flow")} verified</Link>{Number.isFinite(to) && <> to <Time at={to} /></>}
      {" · "}
      {held ? <Link to="decisions" className="am-held">{counted(held, "partition")} held</Link> : "nothing held"}
      {failing > 0 && <> · <Link to="decisions" className="am-failing">{counted(failing, "flow")} failing</Link></>}
      {" · "}
      <span title={HOW.recovery}>recovery point {seconds(recovery)}</span>
    </p>
  );
}

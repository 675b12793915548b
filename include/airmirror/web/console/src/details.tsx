// The pages of a partition, of topics, and of groups.
import { now, useAnswer } from "./api";
import { bytes, count, counted, ms, plain } from "./format";
import { HOW } from "./overview";
import { Answered, Command, Fact, Link, Outer, Table, Text, Time, type Column } from "./parts";
import { pathOf, usePlace } from "./place";
import { Differences } from "./differences";
import type { GroupRow, GroupsAnswer, PartitionAnswer, Range, TopicRow, TopicsAnswer } from "./types";

export function Partition({ dagId }: { dagId: string }) {
  const { query } = usePlace();
  const asked = new URLSearchParams({ topic: query.get("topic") ?? "", partition: query.get("partition") ?? "" });
  const before = query.get("before");
  if (before && /^\d{1,19}$/.test(before)) asked.set("before", before);
  const path = `flows/${pathOf(dagId)}/partition?${asked}`;
  const answer = useAnswer<PartitionAnswer>(path);
  return <Answered answer={answer} path={path}>{(data) => <Story data={data} dagId={dagId} />}</Answered>;
}

function Story({ data, dagId }: { data: PartitionAnswer; dagId: string }) {
  const place = usePlace();
  const { numbers, hold } = data;
  return (
    <>
      <h3 className="am-h">{plain(data.topic)}-{data.partition}{numbers && <> → {plain(numbers.remote_topic)}-{data.partition}</>}</h3>
      {numbers && (
        <dl className="am-facts">
          <Fact name="position" how="The next source offset to copy.">{numbers.position < 0 ? "nothing replicated" : count(numbers.position)}</Fact>
          <Fact name="high watermark" how="The source's end when the last window began.">{count(numbers.high_watermark)}</Fact>
          <Fact name="lag" how={HOW.lag}>{numbers.lag_records ? `${counted(numbers.lag_records, "record")}${numbers.newest_ms < 0 ? "" : `, ${ms(now() - numbers.newest_ms)}`}` : "none"}</Fact>
          <Fact name="verified to" how="The last source offset that the gate has let pass, and when.">{data.verified ? <>{count(data.verified.offset)}, <Time at={data.verified.time_ms} /></> : "nothing"}</Fact>
          <Fact name="verified in all" how="Records, and bytes of their batches, that the gate has let pass since the ledger began to count.">{count(numbers.records)} records, {bytes(numbers.bytes)}</Fact>
          <Fact name="latency" how="From the timestamp of the newest record copied to its commit on the target.">{numbers.newest_ms < 0 ? "not known" : ms(numbers.latency_ms)}</Fact>
        </dl>
      )}
      {hold && (
        <p role="status" className="am-problem">
          Held by {plain(hold.by)} since <Time at={hold.time_ms} />, from offset {count(hold.offset)} on: <Text most={4_000}>{hold.reason}</Text> <Link to="decisions">What can be decided</Link>
        </p>
      )}
      {data.failing.map((each) => <p key={each.since_ms} role="status" className="am-problem">Fails since <Time at={each.since_ms} />, in {counted(each.windows, "window")}: <Text most={4_000}>{each.error}</Text></p>)}
      <Decided data={data} />
      <h4 className="am-h">Ranges, the newest first</h4>
      {data.records && <p><Link to={`record/${pathOf(dagId)}`} query={recordOf(data, data.hold?.offset ?? data.ranges[0]?.source_start)}>Compare a record with its copy</Link></p>}
      <Table name="Ranges" columns={rangeColumns(dagId)} rows={data.ranges} id={(row) => String(row.source_start)} empty="Nothing was replicated of this partition, or its mapping records were pruned." />
      {data.more && <button type="button" onClick={() => place.set({ before: String(data.ranges[data.ranges.length - 1].source_start) })}>Earlier ones</button>}
      {place.query.has("before") && <button type="button" onClick={() => place.set({ before: undefined })}>Back to the newest</button>}
      <p className="am-muted">Of the topic as it is now: ranges of an earlier topic of that name are in the mapping topic.</p>
    </>
  );
}

const recordOf = (data: PartitionAnswer, offset?: number): Record<string, string> => ({ topic: data.topic, partition: String(data.partition), ...(offset === undefined ? {} : { offset: String(offset) }) });

function Decided({ data }: { data: PartitionAnswer }) {
  const rows = [
    ...data.decisions.map((each) => ({ ...each, what: each.action.replaceAll("_", " "), where: `at offset ${count(each.offset)}` })),
    ...data.resets.map((each) => ({ ...each, what: `reset: ${each.choice}`, where: `${each.lost_end > each.lost_first ? `lost ${count(each.lost_first)} to ${count(each.lost_end - 1)}` : "nothing lost"}${each.start < 0 ? "" : `, resumes at ${count(each.start)}`}` })),
  ].sort((one, other) => other.time_ms - one.time_ms);
  if (!rows.length) return null;
  return (
    <>
      <h4 className="am-h">Decisions</h4>
      <ul>{rows.map((each) => <li key={`${each.time_ms}-${each.what}`}><Time at={each.time_ms} /> {plain(each.by)}: {each.what}, {each.where}. <Text>{each.reason}</Text></li>)}</ul>
    </>
  );
}

const rangeColumns = (dagId: string): Column<Range>[] => [
  { key: "time", name: "committed", cell: (row) => <Time at={row.time_ms} /> },
  { key: "source", name: "source offsets", right: true, how: "From the first until before the last.", cell: (row) => `${count(row.source_start)} – ${count(row.source_end)}` },
  { key: "target", name: "target offsets", right: true, cell: (row) => `${count(row.target_start)} – ${count(row.target_end)}` },
  { key: "copied", name: "copied", right: true, cell: (row) => count(row.copied) },
  { key: "others", name: "not copied", how: "Source offsets that are no record to copy: control records, records of aborted transactions, holes of compaction, declared losses.", cell: (row) => (["control", "aborted", "holes", "lost"] as const).filter((name) => row[name]).map((name) => <span key={name} className={name === "lost" ? "am-failing" : undefined}>{count(row[name])} {name} </span>) },
  { key: "bytes", name: "size", right: true, cell: (row) => bytes(row.bytes) },
  { key: "verdict", name: "verdict", how: "Read back: the slot has compared what it wrote before it committed. Verified: the gate has let it pass.", cell: (row) => <span title={`digest ${row.digest}`} className={row.verified ? undefined : "am-held"}>{row.verified ? "verified" : "not verified"}{row.read_back ? ", read back" : ""}</span> },
  { key: "window", name: "run", cell: (row) => (row.window.includes("#") ? <Outer to={`dags/${encodeURIComponent(dagId)}/runs/${encodeURIComponent(row.window.split("#")[0])}`}>{plain(row.window.split("#")[0])}</Outer> : plain(row.window)) },
];

export function Topics({ dagId }: { dagId: string }) {
  const path = `flows/${pathOf(dagId)}/topics`;
  const answer = useAnswer<TopicsAnswer>(path);
  return (
    <Answered answer={answer} path={path}>
      {(data) => (
        <>
          <Table name="Topics" columns={topicColumns(data.dag_id)} rows={data.topics} id={(row) => row.topic} text={(row) => `${row.topic} ${row.remote_topic}`} empty="No topic yet: the first window that ends tells which there are." />
          <Differences dagId={data.dag_id} />
        </>
      )}
    </Answered>
  );
}

const topicColumns = (dagId: string): Column<TopicRow>[] => [
  { key: "topic", name: "topic", by: (row) => row.topic, cell: (row) => <Link to={`partition/${pathOf(dagId)}`} query={{ topic: row.topic, partition: "0" }}>{plain(row.topic)}</Link> },
  { key: "remote", name: "remote topic", by: (row) => row.remote_topic, cell: (row) => plain(row.remote_topic) },
  { key: "partitions", name: "partitions", right: true, by: (row) => row.partitions, cell: (row) => <>{count(row.partitions)}{row.held > 0 && <span className="am-held">, {row.held} held</span>}</> },
  { key: "lag", name: "lag", right: true, how: HOW.lag, by: (row) => row.lag_records, cell: (row) => (row.lag_records ? `${row.unknown || row.oldest_ms === null ? "age not known" : ms(now() - row.oldest_ms)}, ${counted(row.lag_records, "record")}` : "none") },
  { key: "latency", name: "latency: least, mean, most", right: true, how: "From records' timestamps to their commits on the target: of the newest records of its partitions, most of the oldest record of a last transaction.", by: (row) => row.latency_mean_ms ?? -1, cell: (row) => (row.latency_mean_ms === null ? "not known" : `${ms(row.latency_least_ms)}, ${ms(row.latency_mean_ms)}, ${ms(row.latency_most_ms)}`) },
  { key: "records", name: "verified", right: true, how: "Records that the gate has let pass since the ledger began to count.", by: (row) => row.records, cell: (row) => `${count(row.records)} records, ${bytes(row.bytes)}` },
  { key: "verified", name: "last", how: "When a gate last let something of the topic pass.", by: (row) => row.verified_ms ?? 0, cell: (row) => <Time at={row.verified_ms} /> },
];

export function Groups({ dagId }: { dagId: string }) {
  const path = `flows/${pathOf(dagId)}/groups`;
  const answer = useAnswer<GroupsAnswer>(path);
  return <Answered answer={answer} path={path}>{(data) => <AllGroups data={data} />}</Answered>;
}

function AllGroups({ data }: { data: GroupsAnswer }) {
  const place = usePlace();
  const chosen = place.query.get("group");
  const columns: Column<GroupRow>[] = [
    { key: "group", name: "group", by: (row) => row.group, cell: (row) => <button type="button" className="am-link" aria-pressed={chosen === row.group} onClick={() => place.set({ group: chosen === row.group ? undefined : row.group })}>{plain(row.group)}</button> },
    { key: "topic", name: "partition", by: (row) => `${row.topic}-${row.partition}`, cell: (row) => `${plain(row.topic)}-${row.partition}` },
    { key: "position", name: "on the source", right: true, how: "The next offset that the group reads, and its lag to the high watermark.", by: (row) => row.position ?? -1, cell: (row) => `${count(row.position)}${row.lag === null ? "" : `, lag ${count(row.lag)}${row.lag_ms === null ? "" : ` (${ms(row.lag_ms)})`}`}` },
    { key: "target", name: "on the target", right: true, how: "Where the group stood there in the last run, and what its position translates to.", by: (row) => row.on_target ?? -1, cell: (row) => (row.translated === null ? count(row.on_target) : `${row.on_target === null ? "none" : count(row.on_target)} → ${count(row.translated)}`) },
    { key: "exact", name: "translation", cell: (row) => (row.exact === null ? "not known" : row.exact ? "exact" : "estimated") },
    { key: "again", name: "would read again", right: true, how: "If it failed over now: records (offsets) before its position that are not verified on the target, and how old the first of them is.", by: (row) => row.again ?? -1, cell: (row) => (row.again === null ? "not known" : `${counted(row.again, "record")}${row.again_ms === null ? "" : `, ${ms(row.again_ms)}`}`) },
    { key: "reason", name: "not moved because", cell: (row) => (row.reason === null ? <span className="am-muted">no run yet</span> : row.reason ? <Text>{row.reason}</Text> : "it was moved") },
    { key: "seen", name: "seen", by: (row) => row.seen_ms, cell: (row) => <Time at={row.seen_ms} age /> },
  ];
  const rows = chosen ? data.rows.filter((row) => row.group === chosen) : data.rows;
  return (
    <>
      <p>Group offsets were last synced <Time at={data.synced_ms} age />, checkpoints written <Time at={data.checkpoints_ms} age />.</p>
      {chosen && (
        <section>
          <h3 className="am-h">{plain(chosen)} <button type="button" onClick={() => place.set({ group: undefined })}>all groups</button></h3>
          <p>Move it now: a dry run, which shows what would be written: <Command>{groupCommand(chosen, data.flow, false)}</Command></p>
          <p>Carry it out; it prints the commands that undo it: <Command>{groupCommand(chosen, data.flow, true)}</Command></p>
        </section>
      )}
      <Table name="Groups" columns={columns} rows={rows} id={(row) => `${row.group}\n${row.topic}\n${row.partition}`} text={(row) => `${row.group} ${row.topic} ${row.reason ?? ""}`} empty="No group was seen. Groups are read where emit.checkpoints.enabled or sync.group.offsets.enabled is set, and `groups` names some that have committed offsets of replicated topics." />
      {data.rows_in_all > data.rows.length && <p role="status">Only the first {count(data.rows.length)} of {count(data.rows_in_all)} rows are shown; <code>airmirror groups</code> has all.</p>}
    </>
  );
}

const groupCommand = (group: string, flow: string, yes: boolean): string => `airmirror groups apply --group ${quoted(group)}${yes ? " --yes" : ""} --flow ${quoted(flow)}`;

/** A word for a shell; what a terminal would obey stays an escape. */
export const quoted = (word: string): string => (plain(word) !== word ? `$'${plain(word.replaceAll(/[\\']/g, "\\$&"))}'` : /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);

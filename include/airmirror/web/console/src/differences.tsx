// What differs between the topics of both clusters, what will be done about it, and sizes: read when somebody asks for it.
import { useAnswer } from "./api";
import { bytes, count, counted, plain } from "./format";
import { Answered, Table, Text, type Column } from "./parts";
import { pathOf, usePlace } from "./place";
import type { Difference, DifferencesAnswer } from "./types";

export function Differences({ dagId }: { dagId: string }) {
  const place = usePlace();
  if (!place.query.has("clusters"))
    return (
      <p>
        <button type="button" onClick={() => place.set({ clusters: "read" })}>Read both clusters</button> for what differs (configs, ACLs, partitions), what will be changed and why, and the sizes of the logs. Nothing is written.
      </p>
    );
  return <Read dagId={dagId} />;
}

function Read({ dagId }: { dagId: string }) {
  const place = usePlace();
  const path = `flows/${pathOf(dagId)}/differences`;
  const answer = useAnswer<DifferencesAnswer>(path, true);
  return (
    <section>
      <h4 className="am-h">On both clusters now <button type="button" onClick={() => place.set({ clusters: undefined })}>hide</button></h4>
      <Answered answer={answer} path={path} once>{(data) => <Both data={data} />}</Answered>
    </section>
  );
}

function Both({ data }: { data: DifferencesAnswer }) {
  const changes = data.drift.filter((each) => each.will_change).length;
  return (
    <>
      <p role="status">
        {data.drift_in_all === 0 ? `Nothing differs, in ${counted(data.topics, "topic")}.` : `${counted(data.drift_in_all, "difference")}; the next window changes ${count(changes)} of them.`}
        {data.drift_in_all > data.drift.length && ` The first ${count(data.drift.length)} are shown.`}
        {data.acls_not_synced && <> ACLs are not copied: <Text>{data.acls_not_synced}</Text></>}
      </p>
      {data.warnings.map((each) => <p key={each} className="am-problem"><Text most={1_000}>{each}</Text></p>)}
      {data.drift.length > 0 && <Table name="Differences" columns={COLUMNS} rows={data.drift} id={(row) => `${row.topic} ${row.remote} ${row.what} ${row.source}`} empty="" />}
      {data.sizes_missing ? (
        <p className="am-problem">Sizes are not known: <Text>{data.sizes_missing}</Text></p>
      ) : (
        <Table name="Sizes" columns={SIZES} rows={Object.entries(data.sizes).map(([topic, [source, target]]) => ({ topic, source, target }))} id={(row) => row.topic} empty="No topic is mirrored." />
      )}
    </>
  );
}

const COLUMNS: Column<Difference>[] = [
  { key: "of", name: "topic", cell: (row) => plain(row.topic) },
  { key: "what", name: "what", how: "A config's name, partitions, an ACL, or the topic itself.", cell: (row) => plain(row.what) },
  { key: "source", name: "source", cell: (row) => <Text>{row.source ?? ""}</Text> },
  { key: "target", name: "target", cell: (row) => <Text>{row.target ?? ""}</Text> },
  { key: "outcome", name: "will be", how: "What the next window makes of the target.", cell: (row) => (row.will_change ? <strong>{plain(row.outcome)}</strong> : plain(row.outcome)) },
  { key: "why", name: "why", cell: (row) => <Text>{row.reason}</Text> },
];

interface Size {
  topic: string;
  source: number | null;
  target: number | null;
}
const SIZE = "Bytes of the topic's logs now, of each partition's largest replica. Batches may lie otherwise on the target, and retention may differ.";
const SIZES: Column<Size>[] = [
  { key: "of", name: "topic", cell: (row) => plain(row.topic) },
  { key: "source", name: "size on the source", right: true, how: SIZE, cell: (row) => (row.source === null ? "not known" : bytes(row.source)) },
  { key: "target", name: "size on the target", right: true, how: SIZE, cell: (row) => (row.target === null ? "not known" : bytes(row.target)) },
];

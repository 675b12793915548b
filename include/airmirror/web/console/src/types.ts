// The API's answers (airmirror/web/console/*.py); times in epoch milliseconds unless a name says otherwise.
export type Maybe<T> = T | null;

/** What a person has decided since the last run failed: the next one shows what becomes of it. */
export interface Decided {
  topic: string;
  partition: number;
  action: string;
  by: string;
  time_ms: number;
  reason: string;
}
export interface Summary {
  flow: string;
  source: string;
  target: string;
  dag_id: string;
  paused: boolean;
  red_run: string;
  stopped: boolean; // the last run failed, and the ledger does not know why
  state: "failing" | "frozen" | "held" | "decided" | "new" | "behind" | "verified" | "unverified";
  decided: Decided[];
  frozen: { topic: string; by: string; time_ms: number; reason: string }[];
  topics: number;
  partitions: number;
  behind: number;
  lag_records: Maybe<number>;
  oldest_ms: Maybe<number>;
  unknown: number;
  records: number;
  bytes: number;
  held: number;
  failing: number;
  measured_ms: Maybe<number>;
  verified_ms: Maybe<number>;
  passed_ms: Maybe<number>;
  follows_ms: number;
  records_per_second: Maybe<number>;
  bytes_per_second: Maybe<number>;
}
export interface OverviewAnswer {
  flows: Summary[];
  hidden: number;
  broken: number;
}
type Column = Maybe<number>[];
export interface Series {
  time: number[];
  lag_records: Column;
  lag_seconds: Column;
  records_per_second: Column;
  bytes_per_second: Column;
  latency: Column;
  latency_most: Column;
  recovery: Column;
}
export interface WindowRow {
  window: string;
  run: Maybe<string>;
  first_ms: Maybe<number>;
  ended_ms: number;
  partitions: number;
  verified: number;
  let_pass: string[]; // by whom, one a partition
  copied: number;
  bytes: number;
  failed: Maybe<number>;
  error: string;
  page: Maybe<string>;
}
export interface Partitions {
  topics: string[];
  topic: number[];
  partition: number[];
  lag: number[];
  newest_ms: number[];
  unverified: number[];
  state: ("" | "held" | "failing")[];
}
export interface Failing {
  topic: string;
  partition: number;
  since_ms: number;
  windows: number;
  transient: boolean;
  error: string;
}
export interface OfFlow {
  flow: string;
  dag_id: string;
}
export interface FlowAnswer extends OfFlow {
  summary: Summary;
  series: Series;
  windows: WindowRow[];
  phases: Record<string, number>;
  outcomes: Record<string, number>;
  latency: Record<string, number | string>[];
  partitions: Partitions;
  holds: { topic: string; partition: number; by: string; time_ms: number; reason: string }[];
  decisions: { topic: string; partition: number; time_ms: number; action: string; by: string }[];
  failing: Failing[];
  reports: { kind: string; name: string; time_ms: number; page: string }[];
}
export interface Range {
  source_start: number;
  source_end: number;
  target_start: number;
  target_end: number;
  remote_topic: string;
  copied: number;
  control: number;
  aborted: number;
  holes: number;
  lost: number;
  bytes: number;
  runs: number;
  read_back: boolean;
  verified: boolean;
  window: string;
  slot: number;
  time_ms: number;
  digest: string;
}
export interface PartitionAnswer extends OfFlow {
  topic: string;
  partition: number;
  numbers: Maybe<{
    remote_topic: string;
    lag_records: number;
    newest_ms: number;
    latency_ms: number;
    verified_ms: number;
    high_watermark: number;
    records: number;
    bytes: number;
    position: number;
    verified_offset: number;
  }>;
  verified: Maybe<{ offset: number; target_end: number; window: string; time_ms: number }>;
  hold: Maybe<{ offset: number; reason: string; window: string; by: string; time_ms: number }>;
  decisions: { time_ms: number; action: string; offset: number; reason: string; by: string }[];
  resets: { time_ms: number; choice: string; problem: string; lost_first: number; lost_end: number; start: number; by: string; reason: string }[];
  failing: Failing[];
  ranges: Range[];
  more: boolean;
  records: boolean;
}
/** A key, a value or a header's value; `bytes` null: it is null. */
export interface Shown {
  bytes: Maybe<number>;
  hidden?: string;
  text?: string;
  json?: string;
  hex?: string;
  cut?: boolean;
}
export interface Single {
  missing?: string;
  timestamp?: number;
  aborted?: boolean;
  key?: Shown;
  value?: Shown;
  headers?: (Shown & { name: string })[];
  headers_in_all?: number;
}
export interface RecordAnswer extends OfFlow {
  topic: string;
  partition: number;
  offset: Maybe<number>;
  start?: number;
  end?: number;
  remote_topic?: string;
  target_offset?: number;
  window?: string;
  source: Single;
  target: Single;
  differences?: Maybe<string[]>;
}
export interface TopicRow {
  topic: string;
  remote_topic: string;
  partitions: number;
  held: number;
  lag_records: number;
  oldest_ms: Maybe<number>;
  unknown: number;
  latency_least_ms: Maybe<number>;
  latency_mean_ms: Maybe<number>;
  latency_most_ms: Maybe<number>;
  records: number;
  bytes: number;
  verified_ms: Maybe<number>;
}
export interface TopicsAnswer extends OfFlow {
  topics: TopicRow[];
}
export interface GroupRow {
  group: string;
  topic: string;
  partition: number;
  position: Maybe<number>;
  lag: Maybe<number>;
  lag_ms: Maybe<number>;
  again: Maybe<number>;
  again_ms: Maybe<number>;
  remote_topic: Maybe<string>;
  translated: Maybe<number>;
  exact: Maybe<boolean>;
  on_target: Maybe<number>;
  reason: Maybe<string>;
  seen_ms: number;
}
export interface GroupsAnswer extends OfFlow {
  rows: GroupRow[];
  rows_in_all: number;
  synced_ms: Maybe<number>;
  checkpoints_ms: Maybe<number>;
}
export interface Asked {
  about: [topic: string, partition: number, last: number][];
  is_held: boolean;
  commands: Record<string, string[]>; // by answer
}
export interface Waiting {
  flow: string;
  dag_id: string;
  decide: string;
  required_actions: string;
  ask: Maybe<string>;
  held: { topic: string; partition: number; first: number; last: number; records: number; reason: string; window: string; since_ms: number }[];
  held_in_all: number;
  asked: Record<string, Asked>; // by the run of decide.… that asks
  options: { name: string; does: string; costs: string; is_final: boolean; commands: string[] }[];
  held_by_people: { topic: string; partition: number; by: string; reason: string; time_ms: number; command: string }[];
  failing: Failing[];
}
export interface Difference {
  topic: string;
  remote: string;
  what: string;
  source: Maybe<string>;
  target: Maybe<string>;
  outcome: string;
  reason: string;
  will_change: boolean;
}
export interface DifferencesAnswer {
  drift: Difference[];
  drift_in_all: number;
  topics: number;
  acls_not_synced: Maybe<string>;
  warnings: string[];
  sizes: Record<string, [source: Maybe<number>, target: Maybe<number>]>;
  sizes_missing: Maybe<string>;
}
/** A question of `decide.…` as Airflow's own API has it, and what it asks about: topic, partition, last offset. */
export interface Question {
  options: string[];
  created_at: string;
  task_instance: { dag_run_id: string; task_id: string };
}
export interface QuestionsAnswer {
  hitl_details: Question[];
}
export interface DecisionsAnswer {
  flows: Waiting[];
  decided: { flow: string; dag_id: string; decided: Decided[] }[];
  of: number;
}

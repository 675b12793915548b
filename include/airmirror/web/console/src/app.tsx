// The console's pages, and the way between them; the same in Airflow's page and in the frame.
import { Component, type ReactNode } from "react";
import { useAnswer } from "./api";
import { Decisions } from "./decisions";
import { Groups, Partition, Topics } from "./details";
import { Flow } from "./flow";
import { Overview } from "./overview";
import { Link } from "./parts";
import { Compared } from "./record";
import { partsOf, pathOf, usePlace } from "./place";
import type { OverviewAnswer } from "./types";

const OURS = /^(replicate|decide|audit|operate|rehearse)\./;

/** Airflow renders us inside its own tree: an error that escapes takes its whole page down. */
export class Boundary extends Component<{ children: ReactNode }, { error?: Error }> {
  state: { error?: Error } = {};
  static getDerivedStateFromError(error: Error) {
    return { error };
  }
  render() {
    return this.state.error ? <p role="alert">Airmirror's console has an error of its own: {String(this.state.error).slice(0, 300)}</p> : this.props.children;
  }
}

export function App({ dagId }: { dagId?: string }) {
  if (dagId !== undefined && !OURS.test(dagId))
    return (
      <div className="airmirror" data-testid="airmirror">
        <p className="am-empty">This DAG mirrors nothing: Airmirror's are named <code>replicate.…</code>, <code>audit.…</code>, <code>decide.…</code>, <code>operate.…</code>, <code>rehearse.…</code>. <Link to="">All flows</Link></p>
      </div>
    );
  return dagId === undefined ? <Pages /> : <div className="airmirror" data-testid="airmirror"><Flow dagId={dagId} /></div>;
}

function Pages() {
  const place = usePlace();
  const [page = "", dagId] = partsOf(place.path);
  return (
    <div className="airmirror" data-testid="airmirror">
      <nav aria-label="Airmirror" className="am-nav">
        <Link to="" current={page === ""}>Overview</Link>
        <Link to="decisions" current={page === "decisions"}>Decisions</Link>
        {dagId && ["flow", "topics", "groups"].map((each) => <Link key={each} to={`${each}/${pathOf(dagId)}`} current={page === each}>{each === "flow" ? dagId.replace(/^replicate\./, "") : each}</Link>)}
      </nav>
      <main>{dagId ? <OfFlow page={page} dagId={dagId} /> : page === "" ? <Overview /> : page === "decisions" ? <Decisions /> : page === "groups" || page === "topics" ? <Choose page={page} /> : <p className="am-empty">There is no such page. <Link to="">All flows</Link></p>}</main>
    </div>
  );
}

function OfFlow({ page, dagId }: { page: string; dagId: string }) {
  if (page === "flow") return <Flow dagId={dagId} />;
  if (page === "partition") return <Partition dagId={dagId} />;
  if (page === "record") return <Compared dagId={dagId} />;
  if (page === "topics") return <Topics dagId={dagId} />;
  if (page === "groups") return <Groups dagId={dagId} />;
  return <p className="am-empty">There is no such page. <Link to="">All flows</Link></p>;
}

function Choose({ page }: { page: string }) {
  const { data } = useAnswer<OverviewAnswer>("overview");
  return <ul>{data?.flows.map((flow) => <li key={flow.dag_id}><Link to={`${page}/${pathOf(flow.dag_id)}`}>{flow.flow}</Link></li>)}</ul>;
}

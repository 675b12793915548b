// For Airflow's own page, which has React and its router on globalThis and looks for each app there by its name.
import { useMemo, type ReactNode } from "react";
import { useHref, useLocation, useNavigate } from "react-router-dom";
import { App, Boundary } from "./app";
import { Card } from "./overview";
import { PlaceProvider, type Place } from "./place";
import { adopt } from "./styles";

interface Props {
  dagId?: string;
}
const ROOT = "/plugin/airmirror"; // of Airflow's router, which knows its base path

function Placed({ tab, children }: { tab?: boolean; children: ReactNode }) {
  const navigate = useNavigate();
  const { pathname, search } = useLocation();
  const root = useHref("/").replace(/\/$/, "");
  const place = useMemo<Place>(() => {
    const to = (path: string, query?: Record<string, string>) => `${ROOT}${path ? `/${path}` : ""}${query ? `?${new URLSearchParams(query)}` : ""}`;
    return {
      path: pathname.startsWith(ROOT) && !tab ? pathname.slice(ROOT.length).replace(/^\/|\/$/g, "") : "",
      query: new URLSearchParams(search),
      link: (path, query) => root + to(path, query),
      go: (path, query) => void navigate(to(path, query)),
      set: (changes) => {
        const query = new URLSearchParams(window.location.search);
        for (const [name, value] of Object.entries(changes)) value === undefined ? query.delete(name) : query.set(name, value);
        void navigate({ search: query.toString() }, { replace: true, preventScrollReset: true });
      },
      outer: (path) => ({ href: new URL(path, document.baseURI).href }),
    };
  }, [navigate, pathname, search, root, tab]);
  return <PlaceProvider value={place}>{children}</PlaceProvider>;
}

const inside = (what: (props: Props) => ReactNode, tab = false) => {
  const Root = (props: Props) => (
    <Boundary>
      <Placed tab={tab}>{what(props)}</Placed>
    </Boundary>
  );
  return Root;
};

adopt();
const page = inside(() => <App />);
Object.assign(globalThis, {
  Airmirror: page,
  Mirror: inside(({ dagId }) => <App dagId={dagId ?? ""} />, true),
  "Airmirror card": inside(() => <div className="airmirror"><Card /></div>, true),
  AirflowPlugin: page,
});
